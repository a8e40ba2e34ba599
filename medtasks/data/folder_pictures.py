"""The pictures that the rows of a benchmark folder name: paths, URLs, base64, or bytes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from medtasks.catalog.benchmark_folder import BenchmarkFolder
from medtasks.catalog.records import Where
from medtasks.core.errors import MediaError
from medtasks.core.schema import shown, suggestion
from medtasks.data.folder_cells import CellError, cell_list, cell_text
from medtasks.data.media.pictures import decode_image
from medtasks.data.picture_urls import PictureUrls
from medtasks.data.release import Release
from medtasks.data.sources import SourceRow

_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,(?P<data>.*)", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{64,}={0,2}\s*")
_BETWEEN_PATHS = re.compile(r"[;|,]")
"""What people write between the paths of several pictures, which is no list."""
_SHORTEST_DATA = 64
"""Characters of base64 that are no path; VLMEvalKit reads shorter cells as the id of a row."""


class FolderPictures:
    """Finds the pictures of rows, or keeps them in ``release`` where rows contain them.

    Pictures are left in the directory ``images`` if all of them are there. If some are in rows or
    at URLs, all are copied.
    """

    def __init__(
        self, folder: BenchmarkFolder, release: Release, rows: Sequence[SourceRow]
    ) -> None:
        self._folder = folder
        self._release = release
        self._rows = rows
        self._composed_names: dict[Path, dict[str, Path]] = {}

    def names(self, value: Any, where: Where) -> list[str]:
        """The names of the pictures of a cell, which may be empty.

        Raises:
            CellError: one of them does not exist or cannot be decoded.
        """
        return [self._name(item, where) for item in _items(value)]

    def _name(self, item: Any, where: Where) -> str:
        """The name of one picture."""
        data = self._bytes_of(item)
        if data is None and self._are_copied:
            data = self._path_below_images(item).read_bytes()
        if data is not None:
            try:
                decode_image(data, "the picture")
            except MediaError as error:
                raise CellError(f"has no usable picture: {error}") from error
            return self._release.picture(data, "image", where)
        path = self._path_below_images(item)
        return path.relative_to(self._images).as_posix()

    @cached_property
    def _are_copied(self) -> bool:
        """Whether a picture is in a row or at a URL, so that all are kept beside the records."""
        for item in self._all_items():
            is_bytes = isinstance(item, bytes | Mapping)
            if is_bytes or (isinstance(item, str) and (_is_url(item) or _is_base64(item))):
                return True
        return False

    @cached_property
    def _images(self) -> Path:
        """The directory of the pictures, without links."""
        return self._folder.images.resolve()

    def _all_items(self) -> Iterator[Any]:
        """Every picture of every row."""
        for row in self._rows:
            for column in self._folder.file.columns.image:
                yield from _items(row.row.get(column))

    def _bytes_of(self, item: Any) -> bytes | None:
        """The bytes of a picture that is in a row or at a URL; None for a path."""
        if isinstance(item, Mapping):
            item = item.get("bytes") or item.get("path")
        if isinstance(item, bytes):
            return item
        text = cell_text(item)
        if _is_url(text):
            try:
                return self._urls.read(text)
            except MediaError as error:
                raise CellError(f"has a URL that cannot be used: {error}") from error
        if _is_base64(text):
            return _decoded(text)
        if text in self._pictures_by_id:
            return _decoded(self._pictures_by_id[text])
        return None

    @cached_property
    def _pictures_by_id(self) -> dict[str, str]:
        """The base64 pictures by the ids of their rows, which other rows may name instead."""
        columns = self._folder.file.columns
        pictures: dict[str, str] = {}
        if columns.id is None:
            return pictures
        for row in self._rows:
            for column in columns.image:
                picture = row.row.get(column)
                if isinstance(picture, str) and _is_base64(picture):
                    pictures[str(row.row.get(columns.id)).strip()] = picture
        return pictures

    @cached_property
    def _urls(self) -> PictureUrls:
        """The pictures at URLs, which are fetched together."""
        urls: dict[str, None] = {}
        for item in self._all_items():
            text = item.get("path") if isinstance(item, Mapping) else item
            if isinstance(text, str) and _is_url(text):
                urls[text.strip()] = None
        return PictureUrls(urls, self._folder.data.name)

    def _path_below_images(self, item: Any) -> Path:
        """The file of a picture that is named by its path.

        Raises:
            CellError: there is none, or it is outside of the directory of the pictures.
        """
        text = cell_text(item.get("path") if isinstance(item, Mapping) else item)
        try:
            path = (self._images / text.replace("\\", "/")).resolve()
            is_present = path.is_file()
        except (OSError, ValueError) as error:  # a name that is too long, or has a NUL
            raise CellError(f"is {shown(text)}, which no file can be called") from error
        if not path.is_relative_to(self._images):
            raise CellError(
                f"is {shown(text)}, which is outside of {self._images}",
                "set `images` in benchmark.yaml (--images of `medtasks new`) to a directory above "
                "all pictures",
            )
        if is_present:
            return path
        equivalent = self._equivalent(path)
        if equivalent is None:
            raise self._absent(text, path)
        return equivalent

    def _equivalent(self, path: Path) -> Path | None:
        """The file whose name differs from that of ``path`` only in how its accents are encoded;
        None if there is none. Macs write an umlaut as two characters, most tables have one.
        """
        if path.name.isascii() or not path.parent.is_dir():
            return None
        if path.parent not in self._composed_names:
            files = [file for file in sorted(path.parent.iterdir()) if file.is_file()]
            composed = {normalize("NFC", file.name): file for file in files}
            self._composed_names[path.parent] = composed
        return self._composed_names[path.parent].get(normalize("NFC", path.name))

    def _absent(self, text: str, path: Path) -> CellError:
        """The error that a cell names no file at ``path``."""
        message = f"is {shown(text)}, which is not a file below {self._images}"
        paths = [part.strip() for part in _BETWEEN_PATHS.split(text)]
        if len(paths) > 1 and (self._images / paths[0]).is_file():
            return CellError(message, f"write several pictures as a list: {json.dumps(paths)}")
        return CellError(
            f"{message}{_near_name(path, self._images)}",
            "correct the path, or the directory of the pictures (`images`)",
        )


def _items(value: Any) -> Iterable[Any]:
    """The pictures of a cell: itself, or the items of a list; none if it is empty."""
    items = cell_list(value)
    if items is None:
        items = [value]
    return [item for item in items if not _is_empty(item)]


def _is_empty(item: Any) -> bool:
    """Whether a cell, or an item of one, holds nothing."""
    if isinstance(item, bytes | Mapping):
        return not item
    try:
        return cell_text(item) == ""
    except CellError:
        return False


def _is_url(text: str) -> bool:
    return text.strip().startswith(("http://", "https://"))


def _is_base64(text: str) -> bool:
    """Whether a text is base64, alone or in a ``data:`` URL."""
    if _DATA_URL.match(text.strip()):
        return True
    # a path of 64 characters without a dot cannot be a picture
    return len(text) >= _SHORTEST_DATA and _BASE64.fullmatch(text) is not None


def _decoded(text: str) -> bytes:
    """The bytes of a text in base64.

    Raises:
        CellError: it is cut or damaged.
    """
    data_url = _DATA_URL.match(text.strip())
    encoded = data_url["data"] if data_url else text
    without_blanks = "".join(encoded.split())
    try:
        return base64.b64decode(without_blanks, validate=True)
    except (binascii.Error, ValueError) as error:
        fix = "export the picture again: spreadsheet cells end after 32,767 characters"
        raise CellError(f"has base64 that cannot be decoded ({error})", fix) from error


def _near_name(path: Path, images: Path) -> str:
    """A suggestion of the file that is meant, in parentheses; empty without one.

    It is a file with a similar name in the same directory, or one with this name in another.
    """
    near = _near_name_in(path.parent, path.name)
    if near:
        return near
    namesakes = sorted(images.rglob(path.name))
    if not namesakes:
        return ""
    return f" (did you mean {namesakes[0].relative_to(images).as_posix()!r}?)"


def _near_name_in(folder: Path, wanted: str) -> str:
    """A suggestion of a file in ``folder`` whose name differs in case, or is similar."""
    if not folder.is_dir():
        return ""
    names = sorted(file.name for file in folder.iterdir() if file.is_file())
    for name in names:
        if name.casefold() == wanted.casefold():
            return f" (did you mean {name!r}?)"
    return suggestion(wanted, names)

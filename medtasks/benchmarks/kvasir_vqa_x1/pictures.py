"""Finds the picture of each Kvasir-VQA-x1 image: in its row, in a directory, at the URL in its row, or on the hub.

Releases differ: the `image` column is the picture's bytes or a URL, or is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where, is_text, wrong
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.core.schema import Frozen
from medtasks.data.fetch import fetch_pictures, hub_tree
from medtasks.data.media.images import read_picture
from medtasks.data.preparation import Preparation
from medtasks.data.prepared import Source
from medtasks.data.sources import read_parquet

HUB = "SimulaMet-HOST/Kvasir-VQA"

_SUFFIXES = (".jpg", ".jpeg", ".png")


class _Fetched(Frozen):
    """A picture that was fetched and decoded: its image, address, name among the media, and size."""

    img_id: str
    url: str
    name: str
    bytes: int


@dataclass
class Pictures:
    """The name of each image's picture below ``root``, by image id, and the errors of missing ones.

    ``addresses`` are those in the rows, ``origin`` is a source of the pictures' own. Pictures that come with the rows,
    or are copied or fetched, go to the directory of the preparation.
    """

    place: Preparation
    names: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, tuple[str, Where]] = field(default_factory=dict)
    root: Path = Path("media")
    failed: dict[str, MediaError] = field(default_factory=dict)
    origin: str | None = None

    def add(self, img_id: str, cell: Any, where: Where) -> None:
        """Store or note a row's ``image``: bytes, bytes and a path, a URL, or nothing.

        Raises:
            DataError: it is something else, or differs from an earlier row of the same image.
        """
        content = _content(cell)
        if isinstance(content, bytes):
            self.names[img_id] = self.place.keep_image(img_id, content, where)
        elif is_text(content):
            earlier, place = self.addresses.setdefault(img_id, (content, where))
            if earlier != content:
                raise DataError(
                    f"{where}: field `image` is {content[:200]!r}, and {earlier[:200]!r} in {place}, although both "
                    f"rows belong to {img_id}; fix the rows."
                )
        elif content is not None:
            raise wrong(where, "image", content, "a picture's bytes, its URL, or nothing")

    def find(self, ids: Sequence[str], source: Source, folders: Sequence[Path], images: Path | None) -> None:
        """Find the pictures of ``ids`` that did not come with the rows of ``source``.

        Searched in this order: the directory ``images`` or, by default, the first of ``folders`` that exists; the URL
        in the row; for rows from the hub, its image dataset. With ``images`` nothing is fetched. Pictures fetched
        before an interruption are not fetched again.

        Raises:
            UsageError: there is no source of pictures, or ``images`` is not a directory.
            DataError: a server requires a login, or cannot be reached; what was fetched is kept.
        """
        if images is not None and not images.is_dir():
            raise UsageError(f"--images {images}: not a directory; give the one with <img_id>.jpg.")
        missing = [img_id for img_id in ids if img_id not in self.names]
        folder = images or next((folder for folder in folders if folder.is_dir()), None)
        if folder is not None:
            files = {path.name for path in folder.iterdir()}
            there = {img_id: [f"{img_id}{end}" for end in _SUFFIXES if f"{img_id}{end}" in files] for img_id in missing}
            found = {img_id: names[0] for img_id, names in there.items() if names}
            tables = [] if len(found) == len(missing) else sorted(folder.rglob("*.parquet"))
            only_source = images is not None or not self.addresses
            if not self.names and (len(found) == len(missing) or (only_source and not tables)):
                self.names, self.root = found, folder  # the pictures stay where they are
                return
            for img_id, name in found.items():
                try:
                    data = read_picture(folder / name)
                except MediaError as error:
                    self.failed[img_id] = error
                else:
                    self.names[img_id] = self.place.keep_image(img_id, data, folder / name)
            self.from_dataset(tables, missing)
        if images is not None:
            return
        urls = {img_id: address for img_id, (address, _) in self.addresses.items() if img_id not in self.names}
        self.fetch(urls)
        without = [img_id for img_id in ids if img_id not in self.names and img_id not in urls]
        if without and source.kind == "hub":
            folder, commit = hub_tree(HUB, "*.parquet")
            tables = sorted(folder.rglob("*.parquet"))
            if not tables:
                raise DataError(f"{HUB}: has no parquet file; give the directory of <img_id>.jpg with --images DIR.")
            self.from_dataset(tables, without)
            self.origin = f"{HUB}@{commit}"
        elif not self.names and not urls:
            raise UsageError(
                f"{source.name}: its rows have no pictures, and images/ beside them has none; give the "
                "directory of <img_id>.jpg with --images DIR."
            )

    def fetch(self, urls: Mapping[str, str]) -> None:
        """Fetch URLs, by image id, except those fetched before an interruption."""
        media = self.place.directory / "media"
        fetched: dict[str, str] = {}
        with self.place.progress_log("fetched", _Fetched) as (known, log):
            for one in known:
                with suppress(OSError):
                    if urls.get(one.img_id) == one.url and (media / one.name).stat().st_size == one.bytes:
                        fetched[one.img_id] = one.name
            self.names |= fetched
            remaining = {img_id: url for img_id, url in urls.items() if img_id not in fetched}

            def keep(img_id: str, data: bytes) -> None:
                self.names[img_id] = self.place.keep_image(img_id, data, remaining[img_id])
                log(_Fetched(img_id=img_id, url=remaining[img_id], name=self.names[img_id], bytes=len(data)))

            self.failed |= fetch_pictures(remaining, keep, progress=self.place.progress)

    def from_dataset(self, tables: Sequence[Path], ids: Sequence[str]) -> None:
        """Take pictures from an image dataset with the columns `img_id` and `image`; the first of each id counts."""
        missing = {img_id for img_id in ids if img_id not in self.names}
        for table in tables:
            for item in read_parquet(table) if missing else ():
                if not {"img_id", "image"} <= set(item.row):
                    raise DataError(
                        f"{item.where}: found the columns {', '.join(map(repr, sorted(item.row)))}, expected `img_id` "
                        "and `image`; give the directory of <img_id>.jpg, or of the image dataset."
                    )
                img_id, content = item.row.get("img_id"), _content(item.row.get("image"))
                if img_id in missing and isinstance(content, bytes):
                    self.names[img_id] = self.place.keep_image(img_id, content, item.where)
                    missing.remove(img_id)
                    if not missing:
                        break


def _content(cell: Any) -> Any:
    """The bytes of a picture, or else its URL, in a row's ``image``; None if it has neither."""
    if isinstance(cell, Mapping):  # an `Image` feature, not decoded
        data = cell.get("bytes")
        cell = data if isinstance(data, bytes) and data else cell.get("path", cell)
    return None if is_text(cell) and not cell[:8].lower().startswith(("http://", "https://")) else cell

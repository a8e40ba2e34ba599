"""Where the picture of each Kvasir-VQA-x1 image comes from: its row, a folder, an address in its row, or the hub.

Releases differ: their `image` column holds the picture's bytes, a URL, a path, or is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from medtasks.benchmarks.kvasir_vqa_x1.source import KvasirSource, read_parquet, saved_rows
from medtasks.data.fetch import Pace, fetch_pictures, is_url
from medtasks.data.hub import hub_tree
from medtasks.data.prepare.job import Progress
from medtasks.data.records import Where, is_file_name
from medtasks.data.records.base import is_text, wrong
from medtasks.data.sources import SourceRow
from medtasks.data.workplace import FETCHED_LOG, Workplace
from medtasks.errors import DataError, MediaError, UsageError
from medtasks.files import MAX_PICTURE_BYTES, read_regular

HUB = "SimulaMet-HOST/Kvasir-VQA"

_SUFFIXES = (".jpg", ".jpeg", ".png")


@dataclass
class Given:
    """What rows hold of their pictures: those that are stored by now, by image id, and the addresses of others."""

    place: Workplace
    kept: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, tuple[str, Where]] = field(default_factory=dict)

    def add(self, img_id: str, cell: Any, where: Where) -> None:
        """Take what a row's ``image`` holds: bytes, bytes and a path, a URL, a path, or nothing.

        Raises:
            DataError: it holds something else, or another picture than an earlier row of the same image.
        """
        if isinstance(cell, Mapping):  # an `Image` feature that is not decoded
            data = cell.get("bytes")
            cell = data if isinstance(data, bytes) and data else cell.get("path", cell)
        if cell is None or cell == "":
            return
        if isinstance(cell, bytes):
            self.kept[img_id] = self.place.keep_image(img_id, cell, where)
        elif is_text(cell):
            earlier, place = self.addresses.setdefault(img_id, (cell, where))
            if earlier != cell:
                raise DataError(
                    f"{where}: field `image` is {cell[:200]!r}, and {earlier[:200]!r} in {place}, although both rows "
                    f"are of {img_id}; fix the rows."
                )
        else:
            raise wrong(where, "image", cell, "a picture's bytes, its URL, its path, or nothing")


class _Fetched(BaseModel):
    """A picture that was fetched and decoded: its image, address, name among the media, and size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    img_id: str
    url: str
    name: str
    bytes: int

    def is_in(self, media: Path) -> bool:
        """Whether the file is still there."""
        try:
            return is_file_name(self.name) and (media / self.name).stat().st_size == self.bytes
        except OSError:
            return False


@dataclass(frozen=True)
class FoundPictures:
    """The name of each image's picture below ``root``, errors of those that could not be had, and their own source."""

    names: dict[str, str]
    root: Path
    failed: dict[str, MediaError] = field(default_factory=dict)
    origin: str | None = None


def find_pictures(
    ids: Sequence[str],
    given: Given,
    opened: KvasirSource,
    images: Path | None,
    *,
    pace: Pace | None = None,
    progress: Progress | None = None,
) -> FoundPictures:
    """A picture for each of ``ids``, as far as there is one.

    Looked for in this order: what rows brought along; the folder ``images`` or, by default, one beside the rows; the
    path or URL in the row; of the hub's rows, the hub's image dataset. With ``images`` named nothing is fetched. What
    was fetched before an interruption is not fetched again.

    Raises:
        UsageError: nothing says where pictures are, or ``images`` is not a directory.
        DataError: a server wants a login, or cannot be reached; what was fetched is kept.
    """
    missing = [img_id for img_id in ids if img_id not in given.kept]
    folder = _folder(opened, images)
    search = _Search(given.place, dict(given.kept))
    if folder is not None:
        lying = _lying(folder, missing)
        tables = [] if len(lying) == len(missing) else _tables(folder)
        alone = images is not None or not given.addresses  # nothing else is asked
        if not given.kept and (len(lying) == len(missing) or (alone and not tables)):
            return FoundPictures(lying, folder)  # the pictures stay where they are
        search.copy({img_id: folder / name for img_id, name in lying.items()})
        search.from_dataset(tables, missing)
    if images is not None:
        return search.found()
    addresses = {img_id: found for img_id, (found, _) in given.addresses.items() if img_id not in search.names}
    search.copy({one: path for one, found in addresses.items() if (path := _local(found, opened.base)) is not None})
    urls = {one: found for one, found in addresses.items() if is_url(found)}
    search.fetch(urls, pace, progress)
    without = [img_id for img_id in ids if img_id not in search.names and img_id not in urls]
    if without and opened.base is None:
        search.from_hub(without)
    elif not search.names and not urls:
        raise UsageError(
            f"{opened.source.name}: its rows hold no pictures, and there are none in images/ beside them; name the "
            "folder of <img_id>.jpg with --images DIR."
        )
    return search.found()


def _folder(opened: KvasirSource, images: Path | None) -> Path | None:
    """The folder in which pictures lie, or a dataset of them."""
    if images is None:
        return next((folder for folder in opened.folders if folder.is_dir()), None)
    if not images.is_dir():
        raise UsageError(f"--images {images}: no such folder; give the one that holds <img_id>.jpg.")
    return images


def _lying(folder: Path, ids: Sequence[str]) -> dict[str, str]:
    there = {path.name for path in folder.iterdir()}
    names = {img_id: next((f"{img_id}{end}" for end in _SUFFIXES if f"{img_id}{end}" in there), None) for img_id in ids}
    return {img_id: name for img_id, name in names.items() if name is not None}


def _tables(folder: Path) -> list[Path]:
    """The parquet files of an image dataset in ``folder``, or the folder of a saved one."""
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        return [folder]
    return sorted(folder.rglob("*.parquet"))


def _local(address: str, base: Path | None) -> Path | None:
    """The file that a path in a row means, if it is one of this machine."""
    if is_url(address) or "\0" in address:
        return None
    path = Path(address) if base is None else base / address
    try:
        return path if path.exists() else None
    except OSError:  # a name that no file system takes
        return None


@dataclass
class _Search:
    """Pictures that are brought into the workplace, from wherever they are."""

    place: Workplace
    names: dict[str, str]
    failed: dict[str, MediaError] = field(default_factory=dict)
    origin: str | None = None

    def copy(self, files: Mapping[str, Path]) -> None:
        """From files, by image id."""
        for img_id, path in files.items():
            try:
                data = read_regular(path, MAX_PICTURE_BYTES)
            except OSError as error:
                self.failed[img_id] = MediaError(f"{path}: cannot be read ({error.strerror}); restore the file.")
            else:
                self.names[img_id] = self.place.keep_image(img_id, data, path)

    def fetch(self, urls: Mapping[str, str], pace: Pace | None, progress: Progress | None) -> None:
        """From the web, by image id; those that came before an interruption are there."""
        known = {(one.img_id, one.url): one for one in self.place.logged(FETCHED_LOG, _Fetched)}
        media = self.place.directory / "media"
        here = {one.img_id: one.name for key, one in known.items() if key in urls.items() and one.is_in(media)}
        self.names |= here
        wanted = {img_id: url for img_id, url in urls.items() if img_id not in here}
        with self.place.log(FETCHED_LOG) as log:

            def keep(img_id: str, data: bytes) -> None:
                self.names[img_id] = self.place.keep_image(img_id, data, wanted[img_id])
                log(_Fetched(img_id=img_id, url=wanted[img_id], name=self.names[img_id], bytes=len(data)))

            self.failed |= fetch_pictures(wanted, keep, pace=pace, progress=progress)

    def from_hub(self, ids: Sequence[str]) -> None:
        """From the hub's image dataset."""
        name = HUB
        folder, commit = hub_tree(name, "*.parquet")
        tables = _tables(folder)
        if not tables:
            raise DataError(f"{name}: holds no parquet file; name the folder of <img_id>.jpg with --images DIR.")
        self.from_dataset(tables, ids)
        self.origin = f"{name}@{commit}"

    def from_dataset(self, tables: Sequence[Path], ids: Sequence[str]) -> None:
        """From rows of an image dataset, whose columns are `img_id` and `image`; the first of each id counts."""
        missing = {img_id for img_id in ids if img_id not in self.names}
        for table in tables:
            for item in _image_rows(table):
                img_id = item.row.get("img_id")
                if not missing:
                    return
                if img_id in missing:
                    one = Given(self.place)
                    one.add(img_id, item.row.get("image"), item.where)
                    self.names |= one.kept
                    missing -= set(one.kept)

    def found(self) -> FoundPictures:
        """What was brought in."""
        return FoundPictures(self.names, Path("media"), self.failed, self.origin)


def _image_rows(table: Path) -> Iterator[SourceRow]:
    rows = read_parquet(table) if table.is_file() else saved_rows(table, "raw")
    for item in rows or ():
        if not {"img_id", "image"} <= set(item.row):
            raise DataError(
                f"{item.where}: found the columns {', '.join(map(repr, sorted(item.row)))}, expected `img_id` and "
                "`image`; give the folder of <img_id>.jpg, or of the image dataset."
            )
        yield item

"""Kvasir-VQA-x1: rows, with or without their pictures, as prepared data.

Releases differ: the `image` column is the picture's bytes or its URL, or is missing. Then pictures
are in a directory, or on the hub.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.kvasir_vqa_x1.records import KvasirRecord, parse_kvasir_row
from medtasks.catalog.benchmark import HubFiles
from medtasks.catalog.records import Where, distinct
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.core.schema import Frozen
from medtasks.data.downloads import fetch_pictures
from medtasks.data.hub import hub_tree, located
from medtasks.data.media.images import read_picture
from medtasks.data.parquet import read_parquet
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Out, PictureOptions
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Release
from medtasks.data.sources import SourceRow

HUB = "SimulaMet/Kvasir-VQA-x1"
HUB_PICTURES = "SimulaMet-HOST/Kvasir-VQA"

_PATTERNS = ("test.jsonl", "test*.jsonl", "*test.jsonl", "test*.parquet")
"""Test rows in a directory or on the hub; the first pattern that matches counts."""

_HUB_PATTERNS = (*_PATTERNS, "*/test*.parquet")
_PICTURE_PATTERNS = ("*.parquet",)

HUB_FILES = (HubFiles(HUB, _HUB_PATTERNS), HubFiles(HUB_PICTURES, _PICTURE_PATTERNS))
"""The newest rows and pictures: the paper names no commits, and the manifest records those used."""


def prepare_kvasir(
    source: Annotated[
        str, typer.Option("--source", help="hub, a directory, or a JSONL or Parquet file.")
    ],
    out: Out = None,
    *,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            help="Directory of <img_id>.jpg or of the image dataset's Parquet files "
            "(default: images/ beside rows).",
        ),
    ] = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare Kvasir-VQA-x1 from ``hub``, a directory or a file.

    Pictures come with the rows, from a directory, by URL, or from the hub's image dataset, in this
    order.

    Raises:
        UsageError: there is no such source, or no source of pictures.
        DataError: a row breaks the format (file, line and field are named), or a server cannot be
            reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    path, origin = located(source, HUB, *_HUB_PATTERNS)
    if images is not None and not images.is_dir():
        raise UsageError(f"--images {images}: not a directory; give the one with <img_id>.jpg.")
    folder = images or _images_beside(path, origin.kind)
    with Preparation("kvasir_vqa_x1", out, **options) as place:
        pictures = _Pictures(Release(path, keep=place.directory / "media"), place)
        records = _read_records(pictures)
        if not place.references_only:
            img_ids = {record.img_id for record in records}
            origin = _take_pictures(pictures, img_ids, origin, folder, use_addresses=images is None)
        unavailable = {f"{img_id}.jpg": error for img_id, error in pictures.failed.items()}
        records = [_with_picture(record, pictures.names) for record in records]
        return place.finish(origin, records, pictures.root, unavailable=unavailable)


def _take_pictures(
    pictures: _Pictures,
    img_ids: AbstractSet[str],
    origin: Source,
    folder: Path | None,
    *,
    use_addresses: bool,
) -> Source:
    """Take the pictures that the rows do not contain from a directory, by URL, or from the hub.

    Args:
        pictures: those in the rows, to which all others are added.
        img_ids: the images that are needed.
        origin: that of the rows.
        folder: a directory of pictures, if there is one.
        use_addresses: whether URLs in the rows are used: not if the user named the directory.

    Returns:
        The origin of rows and pictures.

    Raises:
        UsageError: there is no source of pictures.
    """
    missing = pictures.missing(img_ids)
    if missing and folder is not None:
        pictures.take_from_folder(folder, missing, fetchable=use_addresses)
    addresses: dict[str, str] = {}
    if use_addresses:
        addresses = pictures.addresses_of(pictures.missing(img_ids))
    pictures.fetch(addresses)
    missing = pictures.missing(img_ids)
    if missing and folder is None and origin.kind == "hub":
        commit = pictures.take_from_hub(missing)
        origin = origin.model_copy(update={"images": f"{HUB_PICTURES}@{commit}"})
    has_source = pictures.names or addresses or pictures.root == folder
    if missing and use_addresses and not has_source:
        raise UsageError(
            f"{origin.name}: its rows have no pictures, nor has images/ beside them or the "
            "image dataset; give the directory of <img_id>.jpg with --images DIR."
        )
    return origin


def _images_beside(path: Path, kind: str) -> Path | None:
    """The directory ``images`` beside the rows, if there is one."""
    near: tuple[Path, ...] = ()
    if kind == "directory":
        near = (path,)
    elif kind == "file":
        near = (path.parent, path.parent.parent)
    for parent in near:
        if (parent / "images").is_dir():
            return parent / "images"
    return None


def _read_records(pictures: _Pictures) -> list[KvasirRecord]:
    """The records of a release; pictures and URLs in its rows are added to ``pictures``."""
    records = []
    for item in pictures.release.rows(*_PATTERNS):
        record = parse_kvasir_row(item.row, item.where)
        records.append(record)
        if not pictures.place.references_only:
            pictures.add_cell(item, record.img_id)
    return distinct(records)


def _with_picture(record: KvasirRecord, names: Mapping[str, str]) -> KvasirRecord:
    """The record with the file of its picture, if the picture was found."""
    media = names.get(record.img_id, record.media[0])
    return record.model_copy(update={"media": (media,)})


class _Fetched(Frozen):
    """A picture that was fetched and kept, as an entry of the progress log."""

    img_id: str
    url: str
    name: str
    bytes: int


@dataclass
class _Pictures:
    """The pictures of a release while they are collected, by image id.

    ``names`` are those of the pictures' files below ``root``, ``addresses`` the URLs in rows, and
    ``failed`` the errors of pictures that could not be read or fetched.
    """

    release: Release
    place: Preparation
    root: Path = Path("media")
    names: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    failed: dict[str, MediaError] = field(default_factory=dict)

    def missing(self, img_ids: AbstractSet[str]) -> set[str]:
        """The images that have neither a picture nor an error yet."""
        return set(img_ids) - self.names.keys() - self.failed.keys()

    def addresses_of(self, img_ids: AbstractSet[str]) -> dict[str, str]:
        """The URLs of those images that have one, sorted by id."""
        with_address = img_ids & self.addresses.keys()
        return {img_id: self.addresses[img_id] for img_id in sorted(with_address)}

    def keep(self, img_id: str, data: bytes, where: Where) -> None:
        """Keep the bytes of a picture among the prepared data."""
        self.names[img_id] = self.release.picture(data, "image", where, img_id)

    def add_cell(self, item: SourceRow, img_id: str) -> None:
        """Keep the picture, or note the URL, in a row's ``image``."""
        content = _content(item.row.get("image"))
        if isinstance(content, str):
            earlier = self.addresses.setdefault(img_id, content)
            if earlier != content:
                raise DataError(
                    f"{item.where}: field `image` is {content[:200]!r}, and {earlier[:200]!r} in "
                    f"an earlier row of {img_id}; fix the rows."
                )
        elif content:
            self.keep(img_id, content, item.where)

    def take_from_folder(self, folder: Path, missing: AbstractSet[str], *, fetchable: bool) -> None:
        """Take ``missing`` pictures from a directory of picture files or Parquet files.

        The files stay where they are if no other place has any of the pictures: neither rows nor
        tables nor, if URLs are ``fetchable``, a server.
        """
        files = _files_of(folder, missing)
        tables = [*folder.rglob("*.parquet")] if len(files) < len(missing) else []
        to_fetch = self.addresses_of(missing - files.keys()) if fetchable else {}
        if not (tables or self.names or to_fetch):
            self.root = folder
            self.names = files
            return
        for img_id, name in files.items():
            try:
                data = read_picture(folder / name)
            except MediaError as error:
                self.failed[img_id] = error
                continue
            self.keep(img_id, data, Where(name, 1))
        self.take_from_tables(tables, missing - files.keys())

    def take_from_tables(self, tables: Sequence[Path], missing: AbstractSet[str]) -> None:
        """Take ``missing`` pictures from Parquet files with the columns `img_id` and `image`.

        The first picture of each image counts.
        """
        remaining = set(missing)
        for table in sorted(tables):
            if not remaining:
                return
            for item in read_parquet(table):
                img_id, content = _dataset_cells(item)
                if img_id in remaining and content:
                    self.keep(img_id, content, item.where)
                    remaining.remove(img_id)
                if not remaining:
                    return

    def take_from_hub(self, missing: AbstractSet[str]) -> str | None:
        """Take ``missing`` pictures from the image dataset on the hub; returns its commit."""
        dataset, commit = hub_tree(HUB_PICTURES, *_PICTURE_PATTERNS)
        self.take_from_tables([*dataset.rglob("*.parquet")], missing)
        return commit

    def fetch(self, addresses: Mapping[str, str]) -> None:
        """Fetch the pictures that no interrupted preparation has fetched."""
        with self.place.progress_log("fetched", _Fetched) as (earlier, log):
            for picture in earlier:
                if addresses.get(picture.img_id) == picture.url and self._is_kept(picture):
                    self.names[picture.img_id] = picture.name
            remaining = {
                img_id: url for img_id, url in addresses.items() if img_id not in self.names
            }
            keep = partial(self._keep_fetched, remaining, log)
            self.failed |= fetch_pictures(remaining, keep, progress=self.place.progress)

    def _keep_fetched(
        self,
        addresses: Mapping[str, str],
        log: Callable[[_Fetched], None],
        img_id: str,
        data: bytes,
    ) -> None:
        """Keep a picture that was fetched from its address, and log it."""
        url = addresses[img_id]
        self.keep(img_id, data, Where(url, 1))
        log(_Fetched(img_id=img_id, url=url, name=self.names[img_id], bytes=len(data)))

    def _is_kept(self, picture: _Fetched) -> bool:
        """Whether the file of a picture that was fetched earlier is whole."""
        with suppress(OSError):
            file = self.place.directory / "media" / picture.name
            return file.stat().st_size == picture.bytes
        return False


def _files_of(folder: Path, img_ids: AbstractSet[str]) -> dict[str, str]:
    """The names of picture files in a directory, by image id; of several the JPEG file."""
    files: dict[str, str] = {}
    for suffix in ("png", "jpeg", "jpg"):
        for file in folder.glob(f"*.{suffix}"):
            if file.stem in img_ids:
                files[file.stem] = file.name
    return files


def _dataset_cells(item: SourceRow) -> tuple[Any, Any]:
    """The image id, and the picture or URL, in a row of the image dataset."""
    if not {"img_id", "image"} <= set(item.row):
        columns = ", ".join(map(repr, sorted(item.row)))
        raise DataError(
            f"{item.where}: found the columns {columns}, expected `img_id` and `image`; give the "
            "directory of <img_id>.jpg, or of the image dataset."
        )
    return item.row["img_id"], _content(item.row["image"])


def _content(cell: Any) -> Any:
    """The bytes of a picture, or else its URL, in a row's ``image``."""
    if isinstance(cell, Mapping):  # an `Image` feature, not decoded
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, str) and not re.match("https?://", cell, re.IGNORECASE):
        return None
    return cell

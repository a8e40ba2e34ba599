"""Kvasir-VQA-x1: release rows as typed records, and these, with or without their pictures, as
prepared data.

Releases differ: the `image` column is the picture's bytes or its URL, or is missing. Then pictures
are in a directory, or on the hub.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import Field, Json
from typing_extensions import Unpack

from medtasks.catalog.records import (
    Record,
    ReleaseRow,
    Where,
    build,
    distinct,
    letters_and_digits,
    parse_row,
)
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.core.schema import Frozen, Text, expects, text_that
from medtasks.data.downloads import fetch_pictures
from medtasks.data.hub import hub_tree, located
from medtasks.data.media.images import read_picture
from medtasks.data.parquet import read_parquet
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Out, PictureOptions
from medtasks.data.prepared import Prepared
from medtasks.data.release import Release
from medtasks.data.sources import read_table

VOCABULARY = read_table(__file__, "vocabulary.yaml", dict[str, dict[str, str]])
ATOMIC_QUESTIONS = VOCABULARY["atomic_questions"]
QUESTION_CLASSES = frozenset(ATOMIC_QUESTIONS.values())
_CLASS_OF = {letters_and_digits(question): name for question, name in ATOMIC_QUESTIONS.items()}
_CLASS_OF[letters_and_digits("How many instruments are in the image?")] = (
    "instrument_count"  # should a release fix its spelling
)


def class_of(question: str) -> str | None:
    """The class of an atomic question, None where it is unknown; case, spacing and punctuation do
    not matter.
    """
    return _CLASS_OF.get(letters_and_digits(question))


class AtomicPair(Frozen, strict=True):
    """One question and short answer of Kvasir-VQA that a merged question was made from."""

    q: str
    a: str


class KvasirRecord(Record):
    """One row of Kvasir-VQA-x1. ``cluster`` is the image."""

    img_id: str
    complexity: Literal[1, 2, 3]
    question: str
    answer: str
    original: tuple[AtomicPair, ...]
    question_class: tuple[str, ...]


_Class = Annotated[
    str, text_that(f"one of {', '.join(sorted(QUESTION_CLASSES))}", QUESTION_CLASSES.__contains__)
]


class _Pair(ReleaseRow):
    q: Annotated[str, text_that("one of the 18 atomic questions of the dataset card", class_of)]
    a: str


class _Row(ReleaseRow):
    img_id: Annotated[
        str,
        # part of the name of a file, which must stay in its directory
        text_that(
            "letters, digits, '.', '_' and '-' only", re.compile(r"(?!\.)[\w.-]{1,200}").fullmatch
        ),
    ]
    complexity: Annotated[
        Literal[1, 2, 3],
        expects("1, 2 or 3", lambda value: type(value) is int and value in (1, 2, 3)),
    ]
    question: Text
    answer: Text
    original: Json[Annotated[tuple[_Pair, ...], Field(strict=False, min_length=1)]]
    question_class: Annotated[tuple[_Class, ...], Field(strict=False, min_length=1)] = ()


def parse_kvasir_row(row: Mapping[str, Any], where: Where) -> KvasirRecord:
    """The record of a release row, whose picture is ``<img_id>.jpg``; raises :class:`DataError`."""
    given = parse_row(_Row, row, where)
    if len(given.original) != given.complexity:
        raise DataError(
            f"{where}: field `original`: found {len(given.original)} atomic pairs, expected {given.complexity}, the "
            "value of `complexity`; fix the row."
        )
    digest = hashlib.sha256(
        f"{given.complexity}|{given.question}|{given.answer}".encode()
    ).hexdigest()
    return build(
        KvasirRecord,
        where,
        sample_id=f"{given.img_id}-{digest[:8]}",
        cluster=given.img_id,
        media=(f"{given.img_id}.jpg",),
        original=tuple(AtomicPair(q=pair.q, a=pair.a) for pair in given.original),
        question_class=given.question_class or tuple(class_of(pair.q) for pair in given.original),
        **given.model_dump(exclude={"original", "question_class"}),
    )


HUB, HUB_PICTURES = "SimulaMet/Kvasir-VQA-x1", "SimulaMet-HOST/Kvasir-VQA"

_PATTERNS = ("test.jsonl", "test*.jsonl", "*test.jsonl", "test*.parquet")
"""Test rows in a directory or on the hub; the first pattern that matches counts."""


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
            help="Directory of <img_id>.jpg or of the image dataset's Parquet files (default: images/ beside rows).",
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
    path, origin = located(source, HUB, *_PATTERNS, "*/test*.parquet")
    near = {"hub": (), "directory": (path,), "file": (path.parent, path.parent.parent)}[origin.kind]
    if images is not None and not images.is_dir():
        raise UsageError(f"--images {images}: not a directory; give the one with <img_id>.jpg.")
    folder = images or next((one / "images" for one in near if (one / "images").is_dir()), None)
    with Preparation("kvasir_vqa_x1", out, **options) as place:
        root, names = Path("media"), dict[str, str]()  # names of the pictures, by image id
        addresses: dict[str, str] = {}
        failed: dict[str, MediaError] = {}
        release = Release(path, keep=place.directory / root)
        records = []
        for item in release.rows(*_PATTERNS):
            records.append(parse_kvasir_row(item.row, item.where))
            data, img_id = _content(item.row.get("image")), records[-1].img_id
            if place.references_only:
                continue
            if isinstance(data, str):
                if addresses.setdefault(img_id, data) != data:
                    raise DataError(
                        f"{item.where}: field `image` is {data[:200]!r}, and {addresses[img_id][:200]!r} in an earlier "
                        f"row of {img_id}; fix the rows."
                    )
            elif data:
                names[img_id] = release.picture(data, "image", item.where, img_id)
        records = distinct(records)
        missing = (
            set() if place.references_only else {record.img_id for record in records} - names.keys()
        )
        if missing and folder is not None:
            ends = ("png", "jpeg", "jpg")  # the last one counts
            files = {
                file.stem: file.name
                for end in ends
                for file in folder.glob(f"*.{end}")
                if file.stem in missing
            }
            tables = [*folder.rglob("*.parquet")] if len(files) < len(missing) else []
            elsewhere = images is None and missing & addresses.keys() - files.keys()
            if tables or names or elsewhere:
                for img_id, name in files.items():
                    try:
                        data = read_picture(folder / name)
                    except MediaError as error:
                        failed[img_id] = error
                        continue
                    names[img_id] = release.picture(data, "image", Where(name, 1), img_id)
                names |= _from_dataset(release, tables, missing - files.keys())
            else:
                root, names = folder, files  # the pictures stay where they are
        missing -= names.keys() | failed.keys()
        wanted = {
            img_id: addresses[img_id]
            for img_id in sorted(missing & addresses.keys())
            if images is None
        }
        failed |= _fetch(wanted, names, release, place)
        missing -= wanted.keys()
        if missing and folder is None and origin.kind == "hub":
            dataset, commit = hub_tree(HUB_PICTURES, "*.parquet")
            names |= _from_dataset(release, [*dataset.rglob("*.parquet")], missing)
            origin = origin.model_copy(update={"images": f"{HUB_PICTURES}@{commit}"})
        if missing and not names and not wanted and root != folder and images is None:
            raise UsageError(
                f"{origin.name}: its rows have no pictures, nor has images/ beside them or the image dataset; give the "
                "directory of <img_id>.jpg with --images DIR."
            )
        kept = [{"media": (names.get(record.img_id, record.media[0]),)} for record in records]
        records = [
            record.model_copy(update=update) for record, update in zip(records, kept, strict=True)
        ]
        return place.finish(
            origin, records, root, unavailable={f"{name}.jpg": why for name, why in failed.items()}
        )


class _Fetched(Frozen):
    img_id: str
    url: str
    name: str
    bytes: int


def _fetch(
    addresses: Mapping[str, str], names: dict[str, str], release: Release, place: Preparation
) -> dict[str, MediaError]:
    """Add the pictures to ``names``, fetching those that no interrupted preparation has; why others
    are missing.
    """
    with place.progress_log("fetched", _Fetched) as (known, log):
        for one in known:
            with suppress(OSError):
                size = (place.directory / "media" / one.name).stat().st_size
                if addresses.get(one.img_id) == one.url and size == one.bytes:
                    names[one.img_id] = one.name
        remaining = {img_id: url for img_id, url in addresses.items() if img_id not in names}

        def keep(img_id: str, data: bytes) -> None:
            url = remaining[img_id]
            names[img_id] = release.picture(data, "image", Where(url, 1), img_id)
            log(_Fetched(img_id=img_id, url=url, name=names[img_id], bytes=len(data)))

        return fetch_pictures(remaining, keep, progress=place.progress)


def _from_dataset(release: Release, tables: Sequence[Path], ids: set[str]) -> dict[str, str]:
    """Take the pictures of ``ids`` from a dataset with the columns `img_id` and `image`; the first
    of each counts.
    """
    names: dict[str, str] = {}
    for item in (
        item for table in sorted(tables) if len(names) < len(ids) for item in read_parquet(table)
    ):
        if not {"img_id", "image"} <= set(item.row):
            raise DataError(
                f"{item.where}: found the columns {', '.join(map(repr, sorted(item.row)))}, expected `img_id` and "
                "`image`; give the directory of <img_id>.jpg, or of the image dataset."
            )
        img_id, data = item.row["img_id"], _content(item.row["image"])
        if img_id in ids and img_id not in names and data:
            names[img_id] = release.picture(data, "image", item.where, img_id)
        if len(names) == len(ids):
            break
    return names


def _content(cell: Any) -> Any:
    """The bytes of a picture, or else its URL, in a row's ``image``."""
    if isinstance(cell, Mapping):  # an `Image` feature, not decoded
        cell = cell.get("bytes") or cell.get("path")
    return (
        None if isinstance(cell, str) and not re.match("https?://", cell, re.IGNORECASE) else cell
    )

"""Kvasir-VQA-x1: release rows as typed records, and these, with or without their pictures, as prepared data.

Releases differ: the `image` column is the picture's bytes or its address, or is missing. Then pictures are in a
directory, or on the hub.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import Field, Json
from typing_extensions import Unpack

from medtasks.catalog.records import Record, ReleaseRow, Where, build, distinct, parse_row, plain, wrong
from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import Frozen, Text, expects
from medtasks.data.media.images import read_picture
from medtasks.data.preparation import Out, PictureOptions, Preparation
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Release, hub_tree, located, picture_suffix
from medtasks.data.sources import read_parquet, read_table

VOCABULARY = read_table(__file__, "vocabulary.yaml", dict[str, dict[str, str]])
ATOMIC_QUESTIONS = VOCABULARY["atomic_questions"]
QUESTION_CLASSES = frozenset(ATOMIC_QUESTIONS.values())
_CLASS_OF = {plain(question): name for question, name in ATOMIC_QUESTIONS.items()}
_CLASS_OF[plain("How many instruments are in the image?")] = "instrument_count"  # should a release fix its spelling


def class_of(question: str) -> str | None:
    """The class of an atomic question, None where it is unknown; case, spacing and punctuation do not matter."""
    return _CLASS_OF.get(plain(question))


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


def _is_known_question(value: Any) -> bool:
    return isinstance(value, str) and class_of(value) is not None


def _is_class(value: Any) -> bool:
    return isinstance(value, str) and value in QUESTION_CLASSES


_Class = Annotated[str, expects(f"one of {', '.join(sorted(QUESTION_CLASSES))}", _is_class)]


class _Pair(ReleaseRow):
    q: Annotated[str, expects("one of the 18 atomic questions of the dataset card", _is_known_question)]
    a: str


class _Row(ReleaseRow):
    img_id: Annotated[
        str,
        expects(
            "letters, digits, '.', '_' and '-' only",  # part of the name of a file, which must stay in its directory
            lambda value: isinstance(value, str) and re.fullmatch(r"(?!\.)[\w.-]{1,200}", value) is not None,
        ),
    ]
    complexity: Annotated[
        Literal[1, 2, 3], expects("1, 2 or 3", lambda value: type(value) is int and value in (1, 2, 3))
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
    digest = hashlib.sha256(f"{given.complexity}|{given.question}|{given.answer}".encode()).hexdigest()
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
    source: Annotated[str, typer.Option("--source", help="hub, a directory, or a JSONL or Parquet file.")],
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

    Pictures come with the rows, from a directory, or from the hub's image dataset (`_Pictures.find`).

    Raises:
        UsageError: there is no such source, or no source of pictures.
        DataError: a row breaks the format (file, line and field are named), or the hub cannot be reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    path, origin = located(source, HUB, *_PATTERNS, "*/test*.parquet")
    near = {"hub": (), "directory": (path,), "file": (path.parent, path.parent.parent)}[origin.kind]
    release = Release(path)
    with Preparation("kvasir_vqa_x1", out, **options) as place:
        pictures = _Pictures(place.directory / "media")
        records = []
        for item in release.rows(*_PATTERNS):
            records.append(parse_kvasir_row(item.row, item.where))
            if not place.references_only:
                pictures.add(records[-1].img_id, item.row.get("image"), item.where)
        records = distinct(records)
        if place.references_only or not records:
            return place.finish(origin, records)
        names = {record.img_id: record.media[0] for record in records}
        root, found = pictures.find([*names], origin, [folder / "images" for folder in near], images)
        names |= pictures.names
        records = [record.model_copy(update={"media": (names[record.img_id],)}) for record in records]
        return place.finish(origin.model_copy(update={"images": found}), records, root)


@dataclass
class _Pictures:
    """Finds the pictures; those that come with the rows or from a dataset go to ``folder``."""

    folder: Path
    names: dict[str, str] = field(default_factory=dict)  # of the pictures' files, by image id
    digests: dict[str, str] = field(default_factory=dict)

    def add(self, img_id: str, cell: Any, where: Any) -> None:
        """Store the original bytes of a picture, if a row's ``image`` has some; no id may belong to two."""
        data = cell.get("bytes") if isinstance(cell, Mapping) else cell  # an `Image` feature, not decoded
        if not data or isinstance(data, str):
            return
        if not isinstance(data, bytes):
            raise wrong(where, "image", data, "a picture's bytes, its address, or nothing")
        digest = hashlib.sha256(data).hexdigest()
        if self.digests.setdefault(img_id, digest) != digest:
            raise DataError(f"{where}: field `image` differs from that of an earlier row of {img_id}; fix the rows.")
        self.names[img_id] = f"{img_id}{picture_suffix(data)}"
        path = self.folder / self.names[img_id]
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)

    def find(
        self, ids: Sequence[str], source: Source, folders: Sequence[Path], images: Path | None
    ) -> tuple[Path, str | None]:
        """Find the pictures of ``ids`` that did not come with the rows of ``source``: the directory of all of them, and
        the dataset that they are from, if any.

        Searched in this order: the directory ``images`` or, by default, the first of ``folders`` that exists; for rows
        from the hub, its image dataset. With ``images`` nothing is fetched.
        """
        if images is not None and not images.is_dir():
            raise UsageError(f"--images {images}: not a directory; give the one with <img_id>.jpg.")
        missing = {*ids} - self.names.keys()
        folder = images or next((folder for folder in folders if folder.is_dir()), None)
        if folder is not None:
            files = {path.name for path in folder.iterdir()}
            suffixes = (".png", ".jpeg", ".jpg")  # the last one counts
            found = {name: f"{name}{end}" for end in suffixes for name in missing if f"{name}{end}" in files}
            tables = [] if len(found) == len(missing) else sorted(folder.rglob("*.parquet"))
            if not self.names and not tables:
                self.names = found  # the pictures stay where they are
                return folder, None
            for img_id, name in found.items():
                self.add(img_id, read_picture(folder / name), folder / name)
            self.add_from(tables, missing - found.keys())
        elif missing and source.kind == "hub":
            folder, commit = hub_tree(HUB_PICTURES, "*.parquet")
            tables = sorted(folder.rglob("*.parquet"))
            if not tables:
                raise DataError(
                    f"{HUB_PICTURES}: has no parquet file; give the directory of <img_id>.jpg with --images DIR."
                )
            self.add_from(tables, missing)
            return Path("media"), f"{HUB_PICTURES}@{commit}"
        if not self.names and images is None:
            raise UsageError(
                f"{source.name}: its rows have no pictures, and images/ beside them has none; give the "
                "directory of <img_id>.jpg with --images DIR."
            )
        return Path("media"), None

    def add_from(self, tables: Sequence[Path], ids: set[str]) -> None:
        """Take the pictures of ``ids`` from a dataset with the columns `img_id` and `image`; the first one counts."""
        for item in (item for table in tables if ids for item in read_parquet(table)):
            if not {"img_id", "image"} <= set(item.row):
                raise DataError(
                    f"{item.where}: found the columns {', '.join(map(repr, sorted(item.row)))}, expected `img_id` "
                    "and `image`; give the directory of <img_id>.jpg, or of the image dataset."
                )
            img_id = item.row["img_id"]
            if img_id in ids:
                self.add(img_id, item.row["image"], item.where)
                ids -= {img_id} & self.names.keys()
            if not ids:
                return

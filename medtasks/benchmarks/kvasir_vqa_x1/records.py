"""Kvasir-VQA-x1: release rows as typed records; rows, with or without their pictures, as prepared data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import Field, Json
from typing_extensions import Unpack

from medtasks.benchmarks.kvasir_vqa_x1.pictures import Pictures
from medtasks.catalog.records import Record, ReleaseRow, Where, build, distinct, parse_row, plain
from medtasks.core.errors import DataError
from medtasks.core.schema import Frozen, Text, expects
from medtasks.data.fetch import hub_tree
from medtasks.data.manifest import Source
from medtasks.data.preparation import PictureOptions, Preparation
from medtasks.data.prepare import Out
from medtasks.data.prepared import Prepared
from medtasks.data.release import Release
from medtasks.data.sources import read_table

HUB = "SimulaMet/Kvasir-VQA-x1"

_PATTERNS = ("test.jsonl", "test*.jsonl", "*test.jsonl", "test*.parquet")
"""Test rows in a directory or on the hub; the first pattern that matches counts."""

VOCABULARY = read_table(__file__, "vocabulary.yaml", dict[str, dict[str, str]])
ATOMIC_QUESTIONS = VOCABULARY["atomic_questions"]
QUESTION_CLASSES = frozenset(ATOMIC_QUESTIONS.values())
_CLASS_OF = {plain(question): name for question, name in ATOMIC_QUESTIONS.items()}
_CLASS_OF[plain("How many instruments are in the image?")] = "instrument_count"  # should a release fix its spelling


@lru_cache(maxsize=1024)
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

    Pictures come with the rows, from a directory, by URL, or from the hub's image dataset (`Pictures.find`).

    Raises:
        UsageError: there is no such source, or no source of pictures.
        DataError: a row breaks the format (file, line and field are named), or a server cannot be reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    path, folders = Path(source), [Path(source, "images")]
    if source == "hub":
        path, commit = hub_tree(HUB, *_PATTERNS, "*/test*.parquet")
        origin = Source(kind="hub", name=HUB, revision=commit)
        folders = []
    elif path.is_dir():
        origin = Source(kind="directory", name=path.resolve().name)
    else:
        origin = Source(kind="file", name=path.name)
        folders = [path.parent / "images", path.parent.parent / "images"]
    release = Release(path)
    with Preparation("kvasir_vqa_x1", out, **options) as place:
        pictures = Pictures(place)
        records = []
        for item in release.rows(*_PATTERNS):
            records.append(parse_kvasir_row(item.row, item.where))
            if not place.references_only:
                pictures.add(records[-1].img_id, item.row.get("image"), item.where)
        records = distinct(records)
        if place.references_only or not records:
            return place.finish(origin, records)
        names = {record.img_id: record.media[0] for record in records}
        pictures.find(list(names), origin, folders, images)
        names |= pictures.names
        records = [record.model_copy(update={"media": (names[record.img_id],)}) for record in records]
        origin = origin.model_copy(update={"images": pictures.origin})
        unavailable = {names[img_id]: error for img_id, error in pictures.failed.items()}
        return place.finish(origin, records, pictures.root, unavailable=unavailable)

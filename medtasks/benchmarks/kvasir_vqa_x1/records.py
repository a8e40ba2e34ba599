"""Kvasir-VQA-x1: one release row as a typed record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, Json

from medtasks.catalog.records import Record, ReleaseRow, Where, build, parse_row, plain
from medtasks.core.errors import DataError
from medtasks.core.schema import Frozen, Text, expects
from medtasks.data.sources import read_table

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

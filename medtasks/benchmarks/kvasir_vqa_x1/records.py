"""Kvasir-VQA-x1: release rows as typed records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Json

from medtasks.catalog.records import (
    Record,
    ReleaseRow,
    Where,
    build,
    letters_and_digits,
    parse_row,
)
from medtasks.core.errors import DataError
from medtasks.core.schema import Frozen, Text, expects, text_that
from medtasks.data.sources import read_table

VOCABULARY = read_table(__file__, "vocabulary.yaml", dict[str, dict[str, str]])
ATOMIC_QUESTIONS = VOCABULARY["atomic_questions"]
QUESTION_CLASSES = frozenset(ATOMIC_QUESTIONS.values())
_CLASS_OF = {letters_and_digits(question): name for question, name in ATOMIC_QUESTIONS.items()}
# should a release fix its spelling
_CLASS_OF[letters_and_digits("How many instruments are in the image?")] = "instrument_count"


def class_of(question: str) -> str | None:
    """The class of an atomic question, None if it is unknown.

    Case, spacing and punctuation do not matter.
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


class _KvasirRow(ReleaseRow):
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
    parsed = parse_row(_KvasirRow, row, where)
    if len(parsed.original) != parsed.complexity:
        raise DataError(
            f"{where}: field `original`: found {len(parsed.original)} atomic pairs, expected "
            f"{parsed.complexity}, the value of `complexity`; fix the row."
        )
    digest = hashlib.sha256(
        f"{parsed.complexity}|{parsed.question}|{parsed.answer}".encode()
    ).hexdigest()
    return build(
        KvasirRecord,
        where,
        sample_id=f"{parsed.img_id}-{digest[:8]}",
        cluster=parsed.img_id,
        media=(f"{parsed.img_id}.jpg",),
        original=tuple(AtomicPair(q=pair.q, a=pair.a) for pair in parsed.original),
        question_class=parsed.question_class or tuple(class_of(pair.q) for pair in parsed.original),
        **parsed.model_dump(exclude={"original", "question_class"}),
    )

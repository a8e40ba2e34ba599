"""Typed records of the two benchmarks, and the border at which release rows become records.

Everything behind this border may rely on a record being valid; everything wrong with a row is said here, with
file, line and field.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from medtasks.data.vocabulary import ATOMIC_QUESTIONS, MI_CXR_QTYPES, QUESTION_CLASSES, class_of
from medtasks.errors import DataError

__all__ = [
    "ATOMIC_QUESTIONS",
    "MI_CXR_QTYPES",
    "QUESTION_CLASSES",
    "AtomicPair",
    "KvasirRecord",
    "MiCxrRecord",
    "Record",
    "Where",
    "is_file_name",
    "parse_kvasir_row",
    "parse_mi_cxr_row",
]

OPTIONS = ("A", "B", "C", "D", "E")
VISITS = ("T1", "T2", "T3", "T4", "T5")
_IMAGE_PATH = re.compile(r"files/p[0-9]{2}/(?P<patient>p[0-9]{8})/s[0-9]{8}/[0-9a-f]{8}(?:-[0-9a-f]{8}){4}\.jpg")


@dataclass(frozen=True)
class Where:
    """The place of a row: file (as the user named it) and line or row number, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


class Record(BaseModel):
    """What every record has: an id that stays the same when rows move, its cluster, its media."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sample_id: str
    cluster: str
    media: tuple[str, ...]


class AtomicPair(BaseModel):
    """One question and short answer of Kvasir-VQA that a merged question was made from."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    q: str
    a: str


class KvasirRecord(Record):
    """One row of Kvasir-VQA-x1 (protocol card, "Rows"). ``cluster`` is the image."""

    img_id: str
    complexity: Literal[1, 2, 3]
    question: str
    answer: str
    original: tuple[AtomicPair, ...]
    question_class: tuple[str, ...]

    @model_validator(mode="after")
    def _one_pair_per_level(self) -> KvasirRecord:
        if len(self.original) != self.complexity:
            raise ValueError(
                f"field `original`: found {len(self.original)} atomic pairs, expected {self.complexity}, as "
                "`complexity` says; mend the row"
            )
        return self


class MiCxrRecord(Record):
    """One row of MI-CXR (protocol card, "Rows"). ``cluster`` is the patient; ``media`` are T1 to T5."""

    q_id: int
    group_type: Literal["TEL", "ICR", "GTS"]
    qtype: str
    question: str
    choices: dict[str, str]
    answer: Literal["A", "B", "C", "D", "E"]


def parse_kvasir_row(row: Mapping[str, Any], where: Where, image: str | None = None) -> KvasirRecord:
    """The record that a release row holds; ``image`` is its picture's path, default ``<img_id>.jpg``.

    Raises:
        DataError: a field is missing, has the wrong type, or holds something the card does not know.
    """
    img_id = _text(row, "img_id", where)
    if not is_file_name(img_id):
        raise _wrong(where, "img_id", img_id, "letters, digits, '.', '_' and '-' alone")
    complexity = row.get("complexity")
    if isinstance(complexity, bool) or complexity not in (1, 2, 3) or not isinstance(complexity, int):
        raise _wrong(where, "complexity", complexity, "1, 2 or 3")
    question, answer = _text(row, "question", where), _text(row, "answer", where)
    original = _atomic_pairs(row, where)
    digest = hashlib.sha256(f"{complexity}|{question}|{answer}".encode()).hexdigest()
    return _build(
        KvasirRecord,
        where,
        sample_id=f"{img_id}-{digest[:8]}",
        cluster=img_id,
        media=(image or f"{img_id}.jpg",),
        img_id=img_id,
        complexity=complexity,
        question=question,
        answer=answer,
        original=original,
        question_class=_question_classes(row, original, where),
    )


def parse_mi_cxr_row(row: Mapping[str, Any], where: Where) -> MiCxrRecord:
    """The record that a release row holds.

    Raises:
        DataError: a field is missing, has the wrong type, or holds something the card does not know.
    """
    key = "q_id" if "q_id" in row else "qid"
    q_id = row.get(key)
    if not isinstance(q_id, int) or isinstance(q_id, bool) or q_id < 0:
        raise _wrong(where, "q_id", q_id, "a whole number from 0 (`qid` is read, too)")
    qtype, family = _text(row, "qtype", where), _text(row, "group_type", where)
    variant = qtype.startswith("icr_variant")
    if qtype not in MI_CXR_QTYPES and not variant:
        raise _wrong(where, "qtype", qtype, f"one of {', '.join(MI_CXR_QTYPES)}, or icr_variant…")
    expected = "ICR" if variant else MI_CXR_QTYPES[qtype]
    if family != expected:
        raise _wrong(where, "group_type", family, f"{expected}, the family of {qtype}")
    answer = _text(row, "answer", where)
    if answer not in OPTIONS:
        raise _wrong(where, "answer", answer, "one letter from A to E")
    images = _mapping(row, "images", VISITS, where)
    group = "icr_variant" if variant else family.lower()
    return _build(
        MiCxrRecord,
        where,
        sample_id=f"{group}-{q_id}",
        cluster=_patient(images, where),
        media=tuple(images[visit] for visit in VISITS),
        q_id=q_id,
        group_type=family,
        qtype=qtype,
        question=_text(row, "question", where),
        choices=_mapping(row, "choices", OPTIONS, where),
        answer=answer,
    )


def is_file_name(img_id: str) -> bool:
    """Whether an image id can be part of a file name: it must not lead out of the image folder."""
    return re.fullmatch(r"[\w.-]{1,200}", img_id) is not None and not img_id.startswith(".")


R = TypeVar("R", bound=Record)


def _build(record: Callable[..., R], where: Where, **fields: Any) -> R:
    try:
        return record(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: " + (f"field `{place}`: " if place else "") + f"{message}.") from error


_SHORT = reprlib.Repr()  # rows may hold anything, however deep
_SHORT.maxstring, _SHORT.maxother, _SHORT.maxlist, _SHORT.maxlong = 120, 80, 8, 40


def _wrong(where: Where, field: str, found: object, expected: str) -> DataError:
    shown = _SHORT.repr(found)
    shown = shown if len(shown) <= 160 else shown[:157] + "…"
    said = "is missing" if found is None else f"is {shown}"
    return DataError(f"{where}: field `{field}` {said}, expected {expected}; mend the row.")


def _text(row: Mapping[str, Any], field: str, where: Where) -> str:
    value = row.get(field)
    if not _is_text(value) or not value.strip():
        raise _wrong(where, field, value, "a text that is not empty")
    return str(value)


def _is_text(value: object) -> TypeGuard[str]:
    """Whether ``value`` is a text that can be written down: JSON may hold half a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mapping(row: Mapping[str, Any], field: str, keys: tuple[str, ...], where: Where) -> dict[str, str]:
    value = row.get(field)
    if not isinstance(value, Mapping) or set(value) != set(keys):
        found = sorted(map(str, value)) if isinstance(value, Mapping) else value
        raise _wrong(where, field, found, f"an object with exactly the keys {', '.join(keys)}")
    for key in keys:
        if not _is_text(value[key]) or not value[key].strip():
            raise _wrong(where, f"{field}.{key}", value[key], "a text that is not empty")
    return {key: value[key] for key in keys}


def _patient(images: Mapping[str, str], where: Where) -> str:
    patients = set()
    for visit, path in images.items():
        match = _IMAGE_PATH.fullmatch(path)
        if match is None or ".." in PurePosixPath(path).parts:
            expected = "files/pNN/pNNNNNNNN/sNNNNNNNN/<five dashed groups of hex digits>.jpg"
            raise _wrong(where, f"images.{visit}", path, expected)
        patients.add(match["patient"])
    if len(patients) > 1:
        raise _wrong(where, "images", sorted(patients), "five images of one patient")
    return str(patients.pop())


def _atomic_pairs(row: Mapping[str, Any], where: Where) -> tuple[AtomicPair, ...]:
    text = _text(row, "original", where)
    expected = 'a JSON list of {"q": …, "a": …} objects'
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(where, "original", text, expected) from error
    if not isinstance(pairs, list) or not pairs:
        raise _wrong(where, "original", text, expected)
    found = []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, dict) or not all(_is_text(pair.get(key)) for key in ("q", "a")):
            raise _wrong(where, f"original[{number}]", pair, 'an object with the texts "q" and "a"')
        found.append(AtomicPair(q=pair["q"], a=pair["a"]))
    return tuple(found)


def _question_classes(row: Mapping[str, Any], original: tuple[AtomicPair, ...], where: Where) -> tuple[str, ...]:
    derived = []
    for number, pair in enumerate(original):
        name = class_of(pair.q)
        if name is None:
            raise _wrong(where, f"original[{number}].q", pair.q, "one of the 18 atomic questions of the card")
        derived.append(name)
    given = row.get("question_class")
    if given is None:
        return tuple(derived)
    if not isinstance(given, list) or not given:
        raise _wrong(where, "question_class", given, "a list of class names")
    for number, name in enumerate(given):
        if not isinstance(name, str) or name not in QUESTION_CLASSES:
            expected = f"one of {', '.join(sorted(QUESTION_CLASSES))}"
            raise _wrong(where, f"question_class[{number}]", name, expected)
    return tuple(given)

"""Kvasir-VQA-x1: one release row as a typed record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from medtasks.benchmarks.kvasir_vqa_x1.vocabulary import QUESTION_CLASSES, class_of
from medtasks.data.records.base import Record, Where, build, is_file_name, is_text, text_field, wrong

__all__ = ["AtomicPair", "KvasirRecord", "parse_kvasir_row"]


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
                "`complexity` says; fix the row"
            )
        return self


def parse_kvasir_row(row: Mapping[str, Any], where: Where, image: str | None = None) -> KvasirRecord:
    """The record that a release row holds; ``image`` is its picture's path, default ``<img_id>.jpg``.

    Raises:
        DataError: a field is missing, has the wrong type, or holds something the card does not know.
    """
    img_id = text_field(row, "img_id", where)
    if not is_file_name(img_id):
        raise wrong(where, "img_id", img_id, "letters, digits, '.', '_' and '-' alone")
    complexity = row.get("complexity")
    if isinstance(complexity, bool) or complexity not in (1, 2, 3) or not isinstance(complexity, int):
        raise wrong(where, "complexity", complexity, "1, 2 or 3")
    question, answer = text_field(row, "question", where), text_field(row, "answer", where)
    original = _atomic_pairs(row, where)
    digest = hashlib.sha256(f"{complexity}|{question}|{answer}".encode()).hexdigest()
    return build(
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


def _atomic_pairs(row: Mapping[str, Any], where: Where) -> tuple[AtomicPair, ...]:
    text = text_field(row, "original", where)
    expected = 'a JSON list of {"q": …, "a": …} objects'
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise wrong(where, "original", text, expected) from error
    if not isinstance(pairs, list) or not pairs:
        raise wrong(where, "original", text, expected)
    found = []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, dict) or not all(is_text(pair.get(key)) for key in ("q", "a")):
            raise wrong(where, f"original[{number}]", pair, 'an object with the texts "q" and "a"')
        found.append(AtomicPair(q=pair["q"], a=pair["a"]))
    return tuple(found)


def _question_classes(row: Mapping[str, Any], original: tuple[AtomicPair, ...], where: Where) -> tuple[str, ...]:
    derived = []
    for number, pair in enumerate(original):
        name = class_of(pair.q)
        if name is None:
            raise wrong(where, f"original[{number}].q", pair.q, "one of the 18 atomic questions of the card")
        derived.append(name)
    given = row.get("question_class")
    if given is None:
        return tuple(derived)
    if not isinstance(given, list) or not given:
        raise wrong(where, "question_class", given, "a list of class names")
    for number, name in enumerate(given):
        if not isinstance(name, str) or name not in QUESTION_CLASSES:
            expected = f"one of {', '.join(sorted(QUESTION_CLASSES))}"
            raise wrong(where, f"question_class[{number}]", name, expected)
    return tuple(given)

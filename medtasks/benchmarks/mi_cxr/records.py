"""MI-CXR: one release row as a typed record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from medtasks.benchmarks.mi_cxr.vocabulary import QTYPES
from medtasks.data.records.base import Record, Where, build, text_field, texts_by_key, wrong

__all__ = ["MiCxrRecord", "parse_mi_cxr_row"]

OPTIONS = ("A", "B", "C", "D", "E")
VISITS = ("T1", "T2", "T3", "T4", "T5")
_IMAGE_PATH = re.compile(r"files/p[0-9]{2}/(?P<patient>p[0-9]{8})/s[0-9]{8}/[0-9a-f]{8}(?:-[0-9a-f]{8}){4}\.jpg")


class MiCxrRecord(Record):
    """One row of MI-CXR (protocol card, "Rows"). ``cluster`` is the patient; ``media`` are T1 to T5."""

    q_id: int
    group_type: Literal["TEL", "ICR", "GTS"]
    qtype: str
    question: str
    choices: dict[str, str]
    answer: Literal["A", "B", "C", "D", "E"]


def parse_mi_cxr_row(row: Mapping[str, Any], where: Where) -> MiCxrRecord:
    """The record that a release row holds.

    Raises:
        DataError: a field is missing, has the wrong type, or holds something the card does not know.
    """
    key = "q_id" if "q_id" in row else "qid"
    q_id = row.get(key)
    if not isinstance(q_id, int) or isinstance(q_id, bool) or q_id < 0:
        raise wrong(where, "q_id", q_id, "a whole number from 0 (`qid` is read, too)")
    qtype, family = text_field(row, "qtype", where), text_field(row, "group_type", where)
    variant = qtype.startswith("icr_variant")
    if qtype not in QTYPES and not variant:
        raise wrong(where, "qtype", qtype, f"one of {', '.join(QTYPES)}, or icr_variant…")
    expected = "ICR" if variant else QTYPES[qtype]
    if family != expected:
        raise wrong(where, "group_type", family, f"{expected}, the family of {qtype}")
    answer = text_field(row, "answer", where)
    if answer not in OPTIONS:
        raise wrong(where, "answer", answer, "one letter from A to E")
    images = texts_by_key(row, "images", VISITS, where)
    group = "icr_variant" if variant else family.lower()
    return build(
        MiCxrRecord,
        where,
        sample_id=f"{group}-{q_id}",
        cluster=_patient(images, where),
        media=tuple(images[visit] for visit in VISITS),
        q_id=q_id,
        group_type=family,
        qtype=qtype,
        question=text_field(row, "question", where),
        choices=texts_by_key(row, "choices", OPTIONS, where),
        answer=answer,
    )


def _patient(images: Mapping[str, str], where: Where) -> str:
    patients = set()
    for visit, path in images.items():
        match = _IMAGE_PATH.fullmatch(path)
        if match is None or ".." in PurePosixPath(path).parts:
            expected = "files/pNN/pNNNNNNNN/sNNNNNNNN/<five dashed groups of hex digits>.jpg"
            raise wrong(where, f"images.{visit}", path, expected)
        patients.add(match["patient"])
    if len(patients) > 1:
        raise wrong(where, "images", sorted(patients), "five images of one patient")
    return str(patients.pop())

"""MI-CXR: one release row as a typed record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, model_validator

from medtasks.catalog.records import Record, ReleaseRow, Where, build, parse_row, with_keys
from medtasks.core.schema import Text, expects, mismatch
from medtasks.data.sources import read_table

OPTIONS = ("A", "B", "C", "D", "E")

VOCABULARY = read_table(__file__, "vocabulary.yaml", dict[str, dict[str, tuple[str, ...]]])
QTYPES = {qtype: family for family, subtasks in VOCABULARY.items() for some in subtasks.values() for qtype in some}
"""Question types and their family; those of the ICR variant start with ``icr_variant``."""

VISITS = ("T1", "T2", "T3", "T4", "T5")
_IMAGE_PATH = re.compile(r"files/p[0-9]{2}/(?P<patient>p[0-9]{8})/s[0-9]{8}/[0-9a-f]{8}(?:-[0-9a-f]{8}){4}\.jpg")


class MiCxrRecord(Record):
    """One row of MI-CXR. ``cluster`` is the patient; ``media`` are T1 to T5."""

    q_id: int
    group_type: Literal["TEL", "ICR", "GTS"]
    qtype: str
    question: str
    choices: dict[str, str]
    answer: Literal["A", "B", "C", "D", "E"]


def _is_qtype(value: Any) -> bool:
    return isinstance(value, str) and (value in QTYPES or value.startswith("icr_variant"))


def _is_image_path(value: Any) -> bool:
    return isinstance(value, str) and _IMAGE_PATH.fullmatch(value) is not None


ImagePath = Annotated[
    str, expects("files/pNN/pNNNNNNNN/sNNNNNNNN/<five dashed groups of hex digits>.jpg", _is_image_path)
]


class _Row(ReleaseRow):
    q_id: Annotated[int, Field(ge=0, lt=2**63, validation_alias=AliasChoices("q_id", "qid"))]
    qtype: Annotated[str, expects(f"one of {', '.join(QTYPES)}, or icr_variant…", _is_qtype)]
    group_type: Text
    question: Text
    choices: Annotated[dict[str, Text], with_keys(*OPTIONS)]
    answer: Literal["A", "B", "C", "D", "E"]
    images: Annotated[dict[str, ImagePath], with_keys(*VISITS)]

    @property
    def is_variant(self) -> bool:
        return self.qtype.startswith("icr_variant")

    @property
    def patients(self) -> list[str]:
        matches = map(_IMAGE_PATH.fullmatch, self.images.values())
        return sorted({match["patient"] for match in matches if match})

    @model_validator(mode="after")
    def _is_consistent(self) -> _Row:
        family = "ICR" if self.is_variant else QTYPES[self.qtype]
        if self.group_type != family:
            raise mismatch("group_type", self.group_type, f"{family}, the family of {self.qtype}")
        if len(self.patients) > 1:
            raise mismatch("images", self.patients, "five images of one patient")
        return self


def parse_mi_cxr_row(row: Mapping[str, Any], where: Where) -> MiCxrRecord:
    """The record of a release row; raises :class:`DataError`."""
    given = parse_row(_Row, row, where)
    group = "icr_variant" if given.is_variant else given.group_type.lower()
    return build(
        MiCxrRecord,
        where,
        sample_id=f"{group}-{given.q_id}",
        cluster=given.patients[0],
        media=tuple(given.images.values()),
        **given.model_dump(exclude={"images"}),
    )

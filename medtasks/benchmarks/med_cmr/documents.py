"""Med-CMR's records as documents, and the rows of each task: one per format and dimension."""

from __future__ import annotations

from medtasks.benchmarks.base import Document
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.med_cmr.records import MedCmrRecord
from medtasks.benchmarks.med_cmr.vocabulary import VISION

ABSTENTION = "This cannot be told from the image."


def documents(record: MedCmrRecord) -> list[Document]:
    """The record as a harness document; the right option's letter, or the reference answer, is the target."""
    left_out = {"answer", "choices", "prefixed"}
    document = {
        **record.model_dump(mode="json", exclude=left_out),
        "ability": "vision" if record.dimension in VISION else "reasoning",
        "target": record.answer,
        "abstention": ABSTENTION,
    }
    if record.format == "mcq":
        return [{**document, "choices": dict(record.choices)}]
    return [{**document, "ideal_response": f"This is what the image shows.\nFinal answer: {record.answer}"}]


def _dimension_rows(kind: str, dimension: str) -> Rows:
    return Rows("med_cmr", lambda row: row["format"] == kind and row["dimension"] == dimension)


mcq_sod = _dimension_rows("mcq", "sod")
mcq_fdd = _dimension_rows("mcq", "fdd")
mcq_su = _dimension_rows("mcq", "su")
mcq_tp = _dimension_rows("mcq", "tp")
mcq_cr = _dimension_rows("mcq", "cr")
mcq_ltg = _dimension_rows("mcq", "ltg")
mcq_msi = _dimension_rows("mcq", "msi")
open_sod = _dimension_rows("open", "sod")
open_fdd = _dimension_rows("open", "fdd")
open_su = _dimension_rows("open", "su")
open_tp = _dimension_rows("open", "tp")
open_cr = _dimension_rows("open", "cr")
open_ltg = _dimension_rows("open", "ltg")
open_msi = _dimension_rows("open", "msi")

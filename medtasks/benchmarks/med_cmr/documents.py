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


def _rows(kind: str, dimension: str) -> Rows:
    return Rows("med_cmr", lambda row: row["format"] == kind and row["dimension"] == dimension)


mcq_sod = _rows("mcq", "sod")
mcq_fdd = _rows("mcq", "fdd")
mcq_su = _rows("mcq", "su")
mcq_tp = _rows("mcq", "tp")
mcq_cr = _rows("mcq", "cr")
mcq_ltg = _rows("mcq", "ltg")
mcq_msi = _rows("mcq", "msi")
open_sod = _rows("open", "sod")
open_fdd = _rows("open", "fdd")
open_su = _rows("open", "su")
open_tp = _rows("open", "tp")
open_cr = _rows("open", "cr")
open_ltg = _rows("open", "ltg")
open_msi = _rows("open", "msi")

"""Med-CMR's records as documents, and the rows of each task: one per format and dimension."""

from __future__ import annotations

from medtasks.benchmarks.base import Document
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.med_cmr.records import MedCmrRecord
from medtasks.benchmarks.med_cmr.vocabulary import DIMENSIONS, VISION

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


mcq_sod, mcq_fdd, mcq_su, mcq_tp, mcq_cr, mcq_ltg, mcq_msi = (_dimension_rows("mcq", name) for name in DIMENSIONS)
open_sod, open_fdd, open_su, open_tp, open_cr, open_ltg, open_msi = (
    _dimension_rows("open", name) for name in DIMENSIONS
)

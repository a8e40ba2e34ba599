"""Med-CMR: multiple-choice and judged open-ended questions over seven reasoning dimensions (paper, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.aggregations import pending_value, sample_value
from medtasks.benchmarks.base import Benchmark, Document, Item, SampleView, Value
from medtasks.benchmarks.documents import Rows
from medtasks.data.records import MedCmrRecord
from medtasks.data.store import PREPARE_COMMANDS
from medtasks.data.vocabulary import MED_CMR_VISION
from medtasks.metrics import ACCURACY_DIMENSION_MEAN

__all__ = ["BENCHMARK", "documents", "process_mcq", "process_open"]

OPTIONS = ("A", "B", "C", "D", "E")
ABSTENTION = "This cannot be told from the image."


def documents(record: MedCmrRecord) -> list[Document]:
    """The record as a harness document; the right option's letter, or the reference answer, is the target."""
    left_out = {"answer", "choices", "prefixed"}
    document = {
        **record.model_dump(mode="json", exclude=left_out),
        "ability": "vision" if record.dimension in MED_CMR_VISION else "reasoning",
        "target": record.answer,
        "abstention": ABSTENTION,
    }
    if record.format == "mcq":
        return [{**document, "choices": dict(record.choices)}]
    return [{**document, "ideal_response": f"This is what the image shows.\nFinal answer: {record.answer}"}]


def _field(name: str) -> Any:
    """A breakdown by a descriptive field; rows of which the release does not say it stand under their own name."""

    def keys(view: SampleView) -> tuple[str, ...]:
        return (view.document[name] or "(not stated)",)

    return keys


def _gold_option(view: SampleView) -> tuple[str, ...]:
    return (view.document["target"],) if view.document["format"] == "mcq" else ()


def _dimension_mean(item: Item) -> Value | None:
    """The sums of right answers per dimension that the unweighted mean is made of."""
    accuracy = item.values.get("accuracy")
    if accuracy is None:
        return None
    dimension = item.view.document["dimension"]
    return accuracy.mapped(lambda row: tuple(ACCURACY_DIMENSION_MEAN.item_statistics(dimension, row[0]).tolist()))


BENCHMARK = Benchmark(
    name="med_cmr",
    documents=documents,
    record=MedCmrRecord,
    title="Med-CMR",
    paper="arXiv 2512.00818",
    source="aaassddaadf/Med-CMR",
    licence="Apache-2.0",
    prepare=PREPARE_COMMANDS["med_cmr"],
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns={
        "format": _field("format"),
        "dimension": _field("dimension"),
        "ability": _field("ability"),
        "modality": _field("modality"),
        "organ_system": _field("organ_system"),
        "question_type": _field("question_type"),
        "gold_option": _gold_option,
    },
    options=OPTIONS,
    pooled={"accuracy_dimension_mean": _dimension_mean},
)


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


def process_mcq(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Accuracy of one filtered response: a letter, or a status marker such as ``[none]``, which is wrong."""
    return {"accuracy": sample_value("accuracy", results, doc["target"], doc["cluster"])}


def process_open(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """One open-ended response awaits its judge; nothing of it is scored before."""
    del results
    return {"open_total": pending_value(doc["cluster"])}

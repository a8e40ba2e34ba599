"""Med-CMR's records as documents, the rows of each task (one per format and dimension), and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from medtasks.benchmarks.aggregations import pending_value, scored_by
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.med_cmr.records import DIMENSIONS, MedCmrRecord
from medtasks.catalog.benchmark import ABSTENTION, Document, Item, Value, by_field
from medtasks.metrics.base import Array, means
from medtasks.metrics.item_metrics import ItemScore, sum_in_order

VISION = ("sod", "fdd", "su")
"""The visual dimensions; the other four are those of reasoning."""


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

_DIMENSIONS = tuple(DIMENSIONS)


def mean_of_dimensions(totals: Array) -> Array:
    """Unweighted mean of the dimensions' means, without those that have no items; NaN if none has any.

    Statistics, per dimension: ``(sum of values, items)``.
    """
    sums = totals.reshape(*totals.shape[:-1], len(_DIMENSIONS), 2)
    by_dimension = means(sums[..., 0], sums[..., 1])
    present = ~np.isnan(by_dimension)
    return means(sum_in_order(np.where(present, by_dimension, 0.0)), sum_in_order(present.astype(np.float64)))


ACCURACY_DIMENSION_MEAN = ItemScore(
    "accuracy_dimension_mean",
    2 * len(_DIMENSIONS),
    mean_of_dimensions,
    {"mean": "dimensions-unweighted", "dimensions": ",".join(_DIMENSIONS)},
)
"""Beside the pooled accuracy; each dimension has equal weight, however many items it has."""


BREAKDOWNS = {
    **{
        name: by_field(name) for name in ("format", "dimension", "ability", "modality", "organ_system", "question_type")
    },
    "gold_option": lambda view: (view.document["target"],) if view.document["format"] == "mcq" else (),
}


def dimension_mean(item: Item) -> Value | None:
    """The item's statistics for the unweighted mean of dimensions."""
    accuracy = item.values.get("accuracy")
    if accuracy is None:
        return None
    dimension = item.view.document["dimension"]
    return accuracy.mapped(lambda row: dimension_statistics(dimension, row[0]))


@lru_cache(maxsize=1024)
def dimension_statistics(dimension: str, accuracy: float) -> tuple[float, ...]:
    rows = [(accuracy, 1.0) if one == dimension else (0.0, 0.0) for one in _DIMENSIONS]
    return tuple(number for row in rows for number in row)


process_mcq = scored_by("accuracy")


def process_open(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The value of an open-ended response, which awaits a judge."""
    del results
    return {"open_total": pending_value(doc["cluster"])}

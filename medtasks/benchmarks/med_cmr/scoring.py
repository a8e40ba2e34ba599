"""Med-CMR: accuracy of the option chosen, and its mean over dimensions; open answers await their judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from medtasks.benchmarks.aggregations import pending_value, sample_value
from medtasks.benchmarks.base import Item, SampleView, Value, by_field
from medtasks.benchmarks.med_cmr.vocabulary import DIMENSIONS
from medtasks.metrics.base import Array
from medtasks.metrics.item_metrics import ItemScore, means, sum_in_order

_DIMENSIONS = tuple(DIMENSIONS)


def meandimension_statisticss(totals: Array) -> Array:
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
    meandimension_statisticss,
    {"mean": "dimensions-unweighted", "dimensions": ",".join(_DIMENSIONS)},
)
"""Beside the pooled accuracy; each dimension has equal weight, however many items it has."""


def _gold_option(view: SampleView) -> tuple[str, ...]:
    return (view.document["target"],) if view.document["format"] == "mcq" else ()


BREAKDOWNS = {
    **{
        name: by_field(name) for name in ("format", "dimension", "ability", "modality", "organ_system", "question_type")
    },
    "gold_option": _gold_option,
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


def process_mcq(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Accuracy of one filtered response: a letter, or a status marker such as ``[none]``, which is wrong."""
    return {"accuracy": sample_value("accuracy", results, doc["target"], doc["cluster"])}


def process_open(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """An open-ended response awaits its judge."""
    del results
    return {"open_total": pending_value(doc["cluster"])}

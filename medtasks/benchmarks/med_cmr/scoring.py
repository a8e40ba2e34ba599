"""Med-CMR: accuracy of the option chosen, and its mean over dimensions; open answers await their judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from medtasks.benchmarks.aggregations import pending_value, sample_value
from medtasks.benchmarks.base import Item, SampleView, Value, by_field
from medtasks.benchmarks.med_cmr.vocabulary import DIMENSIONS
from medtasks.metrics import DimensionMean

ACCURACY_DIMENSION_MEAN = DimensionMean("accuracy_dimension_mean", tuple(DIMENSIONS))
"""The unweighted mean of the seven dimensions' accuracies, beside the pooled accuracy."""


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
    return accuracy.mapped(lambda row: _of_dimension(dimension, row[0]))


@lru_cache(maxsize=1024)
def _of_dimension(dimension: str, accuracy: float) -> tuple[float, ...]:
    return tuple(ACCURACY_DIMENSION_MEAN.item_statistics(dimension, accuracy).tolist())


def process_mcq(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Accuracy of one filtered response: a letter, or a status marker such as ``[none]``, which is wrong."""
    return {"accuracy": sample_value("accuracy", results, doc["target"], doc["cluster"])}


def process_open(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """An open-ended response awaits its judge."""
    del results
    return {"open_total": pending_value(doc["cluster"])}

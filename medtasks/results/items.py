"""What counts as one in a score: items made of samples, and their statistics, metric by metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from medtasks.benchmarks.base import Benchmark, Item, Joined, Value
from medtasks.errors import DataError
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array
from medtasks.results.samples import Sample

__all__ = ["by_name", "joined_items", "part_of", "statistics_of", "without_value"]


def joined_items(samples: Iterable[Sample], benchmark: Benchmark, pooled: Sequence[str] = ()) -> Joined:
    """The items of ``samples``, whatever their order, with the values of the ``pooled`` metrics beside their own."""
    ordered = sorted(samples, key=lambda sample: (sample.sample_id, sample.task))
    joined = benchmark.join([sample.view() for sample in ordered])
    return Joined(tuple(_with_pooled(item, benchmark, pooled) for item in joined.items), joined.incomplete)


def _with_pooled(item: Item, benchmark: Benchmark, pooled: Sequence[str]) -> Item:
    values = {name: benchmark.pooled[name](item) for name in pooled}
    found = {name: value for name, value in values.items() if value is not None}
    return replace(item, values={**item.values, **found}) if found else item


def part_of(item: Item, key: str) -> Item:
    """The item with the metrics that are judged by parts cut down to one part."""
    parts = {name: value.parts[key] for name, value in item.values.items() if key in value.parts}
    return replace(item, values={**item.values, **parts}) if parts else item


def by_name(items: Iterable[Item]) -> Mapping[str, Item]:
    """Items by their ids, sorted. Two tasks of a group may have asked the same question: the second gets a number."""
    seen: Counter[str] = Counter()
    found = {}
    for item in sorted(items, key=lambda item: item.item_id):
        seen[item.item_id] += 1
        times = seen[item.item_id]
        found[item.item_id if times == 1 else f"{item.item_id}#{times}"] = item
    return found


def statistics_of(metric: str, items: Sequence[Item]) -> Array:
    """Statistics ``(items, width)``: NaN where an item has no value, zeros where the metric does not apply to it.

    Raises:
        DataError: they are not the metric's.
    """
    width = get_metric(metric).width
    rows = np.full((len(items), width), np.nan)
    for row, item in zip(rows, items, strict=True):
        value: Value | None = item.values.get(metric)
        if value is None:
            row[:] = 0.0
        elif value.statistics is not None:
            if len(value.statistics) != width:
                raise DataError(
                    f"statistics of {metric} have {len(value.statistics)} numbers, expected {width}; score the folder "
                    "again: medtasks score FOLDER --out NEW_FOLDER."
                )
            row[:] = value.statistics
    return rows


def without_value(table: Array) -> npt.NDArray[np.bool_]:
    """Which rows of statistics ``(items, width)`` do not count: those of NaN, which have no value, and those of a
    mean-type metric that count nothing, because it does not apply to them."""
    found: npt.NDArray[np.bool_] = np.asarray(np.isnan(table).any(axis=1))
    return found | (table[:, 1] == 0) if table.shape[1] == 2 else found

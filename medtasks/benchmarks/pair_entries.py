"""Statistics of pairs (prediction, reference), computed at once for all samples of a batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from medtasks.catalog.guest_code import wrong_return
from medtasks.metrics.base import Array, Metric
from medtasks.metrics.registry import LEXICAL, get_metric, lexical_statistics

Entry: TypeAlias = dict[str, Any]
"""The ``statistics`` of one pair and, for a metric that is a mean, its ``score``."""


class PairEntries:
    """The entries of a batch's pairs under some metrics.

    Text metrics are computed at once for all ``pairs``; every other entry is computed when it is
    first asked for. The numbers equal those of each pair alone, bit for bit
    (`medtasks.metrics.registry`).
    """

    def __init__(self, metrics: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._entries: dict[tuple[str, str, str], Entry] = {}
        text_metrics = [name for name in metrics if name in LEXICAL]
        distinct = list(dict.fromkeys(pairs))
        if not text_metrics or len(distinct) < 2:
            return
        for name, table in lexical_statistics(distinct, text_metrics).items():
            entries = table_entries(get_metric(name), table)
            for (prediction, reference), entry in zip(distinct, entries, strict=True):
                self._entries[name, prediction, reference] = entry

    def entry(self, metric: str, prediction: str, reference: str) -> Entry:
        """The entry of one pair.

        Raises:
            MetricUnavailableError: the metric cannot be computed here.
        """
        key = metric, prediction, reference
        if key not in self._entries:
            self._entries[key] = _pair_entry(get_metric(metric), prediction, reference)
        return self._entries[key]


class BatchResponses(list[str]):
    """The filtered responses to one document of a task with these ``metrics``, with the entries of
    the batch that it is in.

    A ``process_results`` passes them to `medtasks.benchmarks.aggregations.sample_value`, which
    takes its numbers from the entries.
    """

    def __init__(
        self, texts: Iterable[str], entries: PairEntries, metrics: tuple[str, ...]
    ) -> None:
        super().__init__(texts)
        self.entries = entries
        self.metrics = metrics


def _pair_entry(metric: Metric, prediction: str, reference: str) -> Entry:
    """The entry of one pair; refuses a metric whose statistics are not an array of numbers."""
    row: object = metric.statistics(prediction, reference)
    if isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in "biuf":
        return table_entries(metric, row[None])[0]
    expected = f"a numpy array of {metric.width} numbers, its `width`"
    function = type(metric).statistics
    raise wrong_return(f"`statistics` of metric {metric.name}", function, row, expected)


def table_entries(metric: Metric, table: Array) -> list[Entry]:
    """The entries of a table of statistics, one row per pair.

    A pair that the metric does not apply to has statistics of zeros, and no score.
    """
    entries: list[Entry] = [{"statistics": row} for row in table.tolist()]
    if metric.width == 2:
        # 0 divided by 0: the metric does not apply to the pair
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = np.ravel(metric.score(table)).tolist()
        for entry, score in zip(entries, scores, strict=True):
            if math.isfinite(score):
                entry["score"] = score
    return entries

"""Item-by-item comparison of two sets of answers to the same questions, e.g. two prompts, tracks, stages or runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel

from medtasks.benchmarks.base import Benchmark
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array
from medtasks.results.column import Rows, without_value
from medtasks.results.table import ItemTable
from medtasks.stats import PairedDifference, clustered_score, few_clusters, paired_difference
from medtasks.stats.bootstrap import Clusters


class PairedScore(BaseModel, frozen=True):
    """One metric of two runs, over the ``items`` with a value in both.

    ``difference`` is ``first`` - ``second`` in the metric's unit, ``interval`` its 95 % interval, ``p_value`` from the
    cluster sign-flip test (`medtasks.stats.paired_difference`). If there are none, ``reason`` says why; ``warning``
    reports too few clusters.
    """

    first: float
    second: float
    difference: float
    interval: tuple[float, float] | None
    p_value: float | None
    items: int
    clusters: int
    reason: str | None = None
    warning: str | None = None


class Paired(BaseModel, frozen=True):
    """The comparison of two runs, by metric and within the groups of each breakdown."""

    first: str
    second: str
    items: int
    unpaired: int
    metrics: dict[str, PairedScore]
    breakdowns: dict[str, dict[str, Paired]] = {}


def compare_tables(
    first: tuple[str, ItemTable], second: tuple[str, ItemTable], benchmark: Benchmark, breakdowns: Sequence[str] = ()
) -> Paired:
    """Compare two (name, table) pairs, joined by item; ``unpaired`` counts the items in only one of them.

    A metric is compared over the items with a value in both, and left out if there are none, or too few to define it.
    Groups of items and their clusters are those of the first table. Without a shared item there is nothing to compare:
    ``items`` is 0, e.g. after ``--limit 1``, when no question has all of its rotations.
    """
    pair = _Pair(first, second, benchmark)
    whole = pair.compared(pair.shared)
    return whole.model_copy(
        update={
            "unpaired": pair.unpaired,
            "breakdowns": {
                name: {
                    key: pair.compared(pair.shared[inside], name, key)
                    for key, rows in first[1].rows_by_group(benchmark, name).items()
                    if (inside := np.isin(pair.shared[:, 0], rows)).any()
                }
                for name in breakdowns
            },
        }
    )


class _Pair:
    """Two tables; ``shared`` ``(items, 2)`` has the rows of each item that is in both."""

    def __init__(self, first: tuple[str, ItemTable], second: tuple[str, ItemTable], benchmark: Benchmark) -> None:
        self._names = first[0], second[0]
        self._tables = first[1], second[1]
        self._benchmark = benchmark
        both = [metric for metric in first[1].metrics if metric in second[1].columns]
        # a group's column is put together on each access
        self._columns = {metric: (first[1].columns[metric], second[1].columns[metric]) for metric in both}
        first_rows, second_rows = (
            {name: row for row, name in enumerate(table.unique) if table.complete[row]} for table in self._tables
        )
        shared = sorted(first_rows.keys() & second_rows.keys())
        pairs = [(first_rows[name], second_rows[name]) for name in shared]
        self.shared = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.unpaired = len(first_rows.keys() ^ second_rows.keys())

    def compared(self, shared: Rows, breakdown: str = "", key: str = "") -> Paired:
        """The comparison over these shared items, which may be those of a breakdown's group."""
        first, _ = self._tables
        in_parts = breakdown == self._benchmark.parts
        found = {}
        for metric, columns in self._columns.items():
            one, two = (
                (column.part(key) if in_parts else column).statistics[shared[:, side]]
                for side, column in enumerate(columns)
            )
            both = ~(without_value(one) | without_value(two))
            if both.any():
                compared = compare_statistics(metric, one[both], two[both], first.codes[shared[both, 0]])
                if math.isfinite(compared.difference):
                    found[metric] = _score(compared, int(both.sum()))
        return Paired(first=self._names[0], second=self._names[1], items=len(shared), unpaired=0, metrics=found)


def compare_statistics(metric: str, first: Array, second: Array, clusters: Clusters) -> PairedDifference:
    """The difference between two models' scores on ``metric``, from statistics ``(items, width)`` of the same items."""
    score = get_metric(metric).score
    return paired_difference(clustered_score(first, clusters, score), clustered_score(second, clusters, score))


def _score(found: PairedDifference, items: int) -> PairedScore:
    return PairedScore(
        first=found.first,
        second=found.second,
        difference=found.difference,
        interval=None if found.low is None or found.high is None else (found.low, found.high),
        p_value=found.p_value,
        items=items,
        clusters=found.clusters,
        reason=found.reason,
        warning=few_clusters(found.clusters),
    )

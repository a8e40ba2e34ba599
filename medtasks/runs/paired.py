"""Item-by-item comparison of two sets of answers to the same questions, e.g. two prompts, tracks, stages or runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from medtasks.catalog.benchmark import Benchmark
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.runs.column import Rows, without_value
from medtasks.runs.table import ItemTable
from medtasks.stats.bootstrap import Clusters
from medtasks.stats.paired import PairedDifference, clustered_score, paired_difference


class Paired(BaseModel, frozen=True):
    """The comparison of two runs, by metric and within the groups of each breakdown."""

    first: str
    second: str
    items: int
    unpaired: int
    metrics: dict[str, PairedDifference]
    breakdowns: dict[str, dict[str, Paired]] = {}


def compare_tables(
    first: tuple[str, ItemTable], second: tuple[str, ItemTable], benchmark: Benchmark, breakdowns: Sequence[str] = ()
) -> Paired:
    """Compare two (name, table) pairs, joined by item; ``unpaired`` counts the items in only one of them.

    A metric is left out if no item has a value in both, or too few to define it. Groups of items and their clusters are
    those of the first table. Without a shared item there is nothing to compare: ``items`` is 0, e.g. after
    ``--limit 1``, when no question has all of its rotations.
    """
    one, other = first[1], second[1]
    rows = [{name: row for row, name in enumerate(table.unique) if table.complete[row]} for table in (one, other)]
    joined = [(rows[0][name], rows[1][name]) for name in sorted(rows[0].keys() & rows[1].keys())]
    shared: Rows = np.array(joined, dtype=np.int64).reshape(-1, 2)
    both = [metric for metric in one.metrics if metric in other.columns]
    # a group's column is put together on each access
    columns = {metric: (one.columns[metric], other.columns[metric]) for metric in both}

    def compared(items: Rows, part: str | None = None, unpaired: int = 0, **more: Any) -> Paired:
        found = {}
        for metric, sides in columns.items():
            left, right = (
                (side if part is None else side.part(part)).statistics[items[:, place]]
                for place, side in enumerate(sides)
            )
            found[metric] = compare_statistics(metric, left, right, one.codes[items[:, 0]])
        metrics = {metric: difference for metric, difference in found.items() if difference is not None}
        return Paired(first=first[0], second=second[0], items=len(items), unpaired=unpaired, metrics=metrics, **more)

    def groups(breakdown: str) -> Mapping[str, Paired]:
        return {
            key: compared(shared[inside], key if breakdown == benchmark.parts else None)
            for key, members in one.rows_by_group(benchmark, breakdown).items()
            if (inside := np.isin(shared[:, 0], members)).any()
        }

    unpaired = len(rows[0].keys() ^ rows[1].keys())
    return compared(shared, None, unpaired, breakdowns={name: groups(name) for name in breakdowns})


def compare_statistics(metric: str, first: Array, second: Array, clusters: Clusters) -> PairedDifference | None:
    """The difference between two scores on ``metric``, over the items for which both have a value.

    None if no item has, or if these items do not define the score.

    Args:
        metric: its name.
        first: statistics ``(items, width)`` of one model; items without a value are NaN.
        second: those of another model on the same items.
        clusters: of each item, as names or numbers.
    """
    both = np.flatnonzero(~(without_value(first) | without_value(second)))
    if not len(both):
        return None
    score = get_metric(metric).score
    common = clusters[both] if isinstance(clusters, np.ndarray) else [clusters[row] for row in both.tolist()]
    one, other = (clustered_score(side[both], common, score) for side in (first, second))
    found = paired_difference(one, other)
    return found if math.isfinite(found.difference) else None

"""Comparisons within a run and between runs: paired differences, and gaps between levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from pydantic import BaseModel

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.scoring.columns import MetricColumn, Rows, reduced_to, without_value
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.run_tables import RunTables
from medtasks.stats.bootstrap import Clusters
from medtasks.stats.cautions import few_clusters
from medtasks.stats.paired import PairedDifference, clustered_score, paired_difference

_LEVEL_METRICS = ("rougeL", "meteor", "exact_match")
"""Metrics of the gaps between levels."""


class Paired(BaseModel, frozen=True):
    """The comparison of two runs, by metric and within the groups of each breakdown."""

    first: str
    second: str
    items: int
    unpaired: int
    metrics: dict[str, PairedDifference]
    breakdowns: dict[str, dict[str, Paired]] = {}


def compare_tables(first: tuple[str, ItemTable], second: tuple[str, ItemTable]) -> Paired:
    """The comparison of two (name, table) pairs, joined by item.

    A metric is left out if no item has a value in both, or too few to define it. Groups of items
    and their clusters are those of the first table. ``items`` is 0 if they share none, e.g. after
    ``--limit 1``; ``unpaired`` counts the items in only one of them.
    """
    pair = _TablePair(*first, *second)
    first_rows, second_rows = _complete_rows(pair.first), _complete_rows(pair.second)
    names = sorted(first_rows.keys() & second_rows.keys())
    rows = [(first_rows[name], second_rows[name]) for name in names]
    shared: Rows = np.array(rows, dtype=np.int64).reshape(-1, 2)
    breakdowns = {name: pair.compared_groups(shared, name) for name in pair.first.breakdowns}
    unpaired = len(first_rows.keys() ^ second_rows.keys())
    update = {"unpaired": unpaired, "breakdowns": breakdowns}
    return pair.compared(shared).model_copy(update=update)


@dataclass(frozen=True)
class _TablePair:
    """Two tables to compare, and their names."""

    first_name: str
    first: ItemTable
    second_name: str
    second: ItemTable

    @cached_property
    def columns(self) -> dict[str, tuple[MetricColumn, MetricColumn]]:
        """The columns of each metric that both have: a group's are put together on each access."""
        columns = {}
        for metric in self.first.metrics:
            if metric in self.second.columns:
                columns[metric] = (self.first.column(metric), self.second.column(metric))
        return columns

    def compared_groups(self, rows: Rows, breakdown: str) -> dict[str, Paired]:
        """The comparison within each group of a breakdown that has some of these items."""
        is_by_part = breakdown == self.first.benchmark.scoring.parts
        compared = {}
        for key, members in self.first.rows_by_group(breakdown).items():
            inside = rows[np.isin(rows[:, 0], members)]
            if len(inside):
                compared[key] = self.compared(inside, part=key if is_by_part else "")
        return compared

    def compared(self, rows: Rows, part: str = "") -> Paired:
        """The comparison over some items, as ``(row of the first table, row of the second)``."""
        rows_of_first, rows_of_second = rows.T
        clusters = self.first.codes[rows_of_first]
        metrics = {}
        for metric, (first_column, second_column) in self.columns.items():
            key = (metric, part)
            first = reduced_to(first_column, self.first.reduced.get(key), rows_of_first)
            second = reduced_to(second_column, self.second.reduced.get(key), rows_of_second)
            difference = compare_statistics(metric, first.statistics, second.statistics, clusters)
            if difference is not None:
                metrics[metric] = difference
        return Paired(
            first=self.first_name,
            second=self.second_name,
            items=len(rows),
            unpaired=0,
            metrics=metrics,
        )


def _complete_rows(table: ItemTable) -> dict[str, int]:
    """The rows of complete items, by the item's unique name."""
    rows = {}
    for row, name in enumerate(table.unique):
        if table.complete[row]:
            rows[name] = row
    return rows


def compare_statistics(
    metric: str, first: Array, second: Array, clusters: Clusters
) -> PairedDifference | None:
    """The difference between two scores on ``metric``, over the items for which both have a value.

    None if these do not define the score. Statistics are ``(items, width)``, NaN for items without
    a value.
    """
    both = np.flatnonzero(~(without_value(first) | without_value(second)))
    if not len(both):
        return None
    score = get_metric(metric).score
    common = _clusters_of(both, clusters)
    first_score = clustered_score(first[both], common, score)
    second_score = clustered_score(second[both], common, score)
    difference = paired_difference(first_score, second_score)
    return difference if math.isfinite(difference.difference) else None


def _clusters_of(rows: Rows, clusters: Clusters) -> Clusters:
    """The cluster of each of these rows."""
    if isinstance(clusters, np.ndarray):
        return clusters[rows]
    return [clusters[row] for row in rows.tolist()]


class LevelGap(BaseModel, frozen=True):
    """A metric at a higher complexity level minus that at a lower one; images have questions at
    both levels.
    """

    metric: str
    difference: float
    interval: tuple[float, float] | None
    warning: str | None = None


def level_gap(lower: ItemTable, higher: ItemTable, metric: str) -> LevelGap | None:
    """The gap between two levels, clustered by image across both; None if an item has no score."""
    for table in (higher, lower):
        if metric not in table.columns or not table.column(metric).known.all():
            return None
    above = higher.column(metric).statistics
    below = lower.column(metric).statistics
    clusters = [*higher.clusters, *lower.clusters]
    score = get_metric(metric).score
    # an item of the other level adds nothing to a sum, so both sides have all clusters
    higher_rows = np.vstack([above, np.zeros_like(below)])
    lower_rows = np.vstack([np.zeros_like(above), below])
    gap = paired_difference(
        clustered_score(higher_rows, clusters, score), clustered_score(lower_rows, clusters, score)
    )
    # the levels have different items, so the cautions do not apply
    warning = few_clusters(gap.clusters)
    return LevelGap(
        metric=metric, difference=gap.difference, interval=gap.interval, warning=warning
    )


def level_gaps(tables: RunTables) -> dict[str, LevelGap]:
    """Gaps between adjacent levels (`ScoringRules.levels`) if both were run, by ``higher - lower:
    metric``.
    """
    gaps = {}
    for lower, higher in _adjacent_levels(tables.tasks):
        if lower not in tables.tasks or higher not in tables.tasks:
            continue
        for metric in _LEVEL_METRICS:
            gap = level_gap(tables.of(lower), tables.of(higher), metric)
            if gap is not None:
                gaps[f"{higher} - {lower}: {metric}"] = gap
    return gaps


def _adjacent_levels(tasks: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of tasks, the lower level first."""
    for levels in dict.fromkeys(load_spec(task).benchmark.scoring.levels for task in tasks):
        yield from pairwise(levels)


def comparisons(tables: RunTables, partner_tables: RunTables) -> dict[str, Paired]:
    """Every task or group with a partner (``compare_with``), compared with that partner of this or
    another run.
    """
    compared = {}
    for name, spec in load_specs().items():
        partner = spec.metadata.compare_with
        if partner is None:
            continue
        members, partner_members = leaf_tasks(name), leaf_tasks(partner)
        is_run = set(members) <= set(tables.tasks)
        if is_run and set(partner_members) <= set(partner_tables.tasks):
            first = (name, tables.of(name, members))
            second = (partner, partner_tables.of(partner, partner_members))
            compared[name] = compare_tables(first, second)
    return compared


def same_tasks(tables: RunTables, other_tables: RunTables) -> dict[str, Paired]:
    """Every task that two runs share, the first run compared with the second."""
    compared = {}
    for name in sorted(set(tables.tasks) & set(other_tables.tasks)):
        first = (f"{name} (this)", tables.of(name))
        second = (f"{name} (other)", other_tables.of(name))
        compared[f"{name} (both)"] = compare_tables(first, second)
    return compared

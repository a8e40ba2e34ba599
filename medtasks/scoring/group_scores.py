"""Scores of items: sums over the rows of a table, with intervals, breakdowns, letters, confidence.

Tasks, groups and breakdowns are scored by the same function, from rows of one table: a group's
score is computed from the summed statistics of all its items, never averaged over its tasks. An
item is a sample, or the rounds of a stream.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from medtasks.catalog.benchmark import Benchmark
from medtasks.metrics.registry import facts_of, get_metric
from medtasks.metrics.variants import PREFERENCE
from medtasks.runs.samples import Sample
from medtasks.scoring.columns import MetricColumn, Rows, reduced_to
from medtasks.scoring.floors import accuracy_floors
from medtasks.scoring.item_table import ItemTable, item_table
from medtasks.scoring.letters import letters_of, rotated_letters_of
from medtasks.scoring.metric_scores import score_group
from medtasks.scoring.reliability import reliability_of
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scores import COVERAGE, Letters, MetricScore, Scores
from medtasks.stats.bootstrap import clustered_standard_error


def score_samples(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    pooled: Sequence[str] = (),
    *,
    threshold: float = COVERAGE,
) -> Scores:
    """Scores of ``samples`` in any order, overall and for each named breakdown of ``benchmark``.

    ``pooled`` names further metrics that only make sense over several tasks; ``threshold`` is as in
    :func:`score_table`.

    Raises:
        MedtasksError: there are no samples, the samples of one task have different metrics, or a
            breakdown is unknown.
    """
    return score_table(item_table(samples, benchmark, breakdowns, pooled), threshold=threshold)


def scores_of(
    tables: RunTables, groups: Mapping[str, Sequence[str]], *, threshold: float = COVERAGE
) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Scores of every task, and of every group pooled over all samples of its tasks."""
    scores_of_tasks = {}
    for name in tables.tasks:
        scores_of_tasks[name] = score_table(tables.of(name), threshold=threshold)
    scores_of_groups = {}
    for name, members in groups.items():
        scores_of_groups[name] = score_table(tables.of(name, members), threshold=threshold)
    return scores_of_tasks, scores_of_groups


def score_table(table: ItemTable, *, threshold: float = COVERAGE) -> Scores:
    """Scores of a table, overall and by breakdown, with 95 % intervals
    (`medtasks.stats.intervals`).

    A judged score is marked incomplete if the share of items with a verdict is below ``threshold``;
    one that still awaits its judge has no value.
    """
    groups = [_whole(table), *_groups_of_breakdowns(table)]
    metrics_of_groups: list[dict[str, MetricScore]] = [{} for _ in groups]
    # one metric after the other, because a pooled column is put together on each access
    for name in table.metrics:
        scores = _scores_of_metric(table, name, groups, threshold)
        for metrics, score in zip(metrics_of_groups, scores, strict=True):
            metrics[name] = score
    whole = _scores_of_group(table, groups[0], metrics_of_groups[0])
    breakdowns: dict[str, dict[str, Scores]] = {name: {} for name in table.breakdowns}
    for group, metrics in zip(groups[1:], metrics_of_groups[1:], strict=True):
        breakdowns[group.breakdown][group.key] = _scores_of_group(table, group, metrics)
    update = {"breakdowns": breakdowns, "reliability": reliability_of(table)}
    return whole.model_copy(update=update)


def standard_errors(
    tables: RunTables, groups: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float | None]]:
    """Clustered standard errors by task and group, for the mean-type metrics whose items all have a
    value.
    """
    members_by_name: dict[str, Sequence[str]] = {**dict.fromkeys(tables.tasks, ()), **groups}
    errors: dict[str, dict[str, float | None]] = {}
    for name, members in members_by_name.items():
        table = tables.of(name, members)
        errors[name] = {}
        for metric in table.metrics:
            column = table.column(metric)
            rows = np.flatnonzero(column.present)
            is_mean = column.statistics.shape[1] == 2
            if is_mean and column.known[rows].all() and column.applies[rows].any():
                error = clustered_standard_error(column.statistics[rows], table.codes[rows])
                errors[name][metric] = error
    return errors


@dataclass(frozen=True)
class _Group:
    """The rows of a table that are scored together: all of them, or a group of a breakdown.

    ``complete`` are those of complete items, in the order of clusters; ``part`` is the part of an
    item that counts.
    """

    breakdown: str
    key: str
    part: str
    rows: Rows
    complete: Rows


def _whole(table: ItemTable) -> _Group:
    return _group(table, "", "", np.arange(len(table.items)))


def _groups_of_breakdowns(table: ItemTable) -> Iterator[_Group]:
    for breakdown in table.breakdowns:
        for key, rows in table.rows_by_group(breakdown).items():
            yield _group(table, breakdown, key, rows)


def _group(table: ItemTable, breakdown: str, key: str, rows: Rows) -> _Group:
    """The group of these rows, its complete ones sorted by cluster."""
    complete = rows[table.complete[rows]]
    by_cluster = complete[np.argsort(table.codes[complete], kind="stable")]
    part = key if breakdown and breakdown == table.benchmark.scoring.parts else ""
    return _Group(breakdown, key, part, rows, by_cluster)


def _scores_of_metric(
    table: ItemTable, name: str, groups: Sequence[_Group], threshold: float
) -> Iterator[MetricScore]:
    """The metric's score of each group."""
    metric = get_metric(name)
    unavailable = functools.cache(metric.unavailable)  # looks for files
    for group in groups:
        column = _column_of_group(table, name, group)
        score = score_group(metric, column, table.codes[group.complete], threshold, unavailable)
        if facts_of(name).has_floors and score.value is not None:
            complete = group.complete[column.applies & column.known]
            score = score.model_copy(update=accuracy_floors(table, complete, score.value))
        yield score


def _column_of_group(table: ItemTable, name: str, group: _Group) -> MetricColumn:
    """The metric's column of the group's complete items, as they count in it; repeats are not
    judged by parts.
    """
    reduced = table.reduced.get((name, group.part))
    column = reduced_to(table.columns[name], reduced, group.complete)
    return column if reduced is None else replace(column, repeats=None)


def _scores_of_group(table: ItemTable, group: _Group, metrics: Mapping[str, MetricScore]) -> Scores:
    """The scores of a group, with its counts of responses, items, clusters and statuses."""
    rows = group.rows.tolist()
    statuses = Counter(chain.from_iterable(table.statuses[row] for row in rows))
    return Scores(
        samples=sum(len(table.samples[row]) for row in rows),
        items=len(group.complete),
        clusters=len(np.unique(table.codes[group.rows])),
        status=dict(sorted(statuses.items())),
        metrics=dict(metrics),
        incomplete=len(rows) - len(group.complete),
        letters=_letters(table, group),
    )


def _letters(table: ItemTable, group: _Group) -> Letters | None:
    """How often each option letter was chosen; with rotated options if the table has them."""
    if PREFERENCE in table.metrics:
        return rotated_letters_of(table, group.complete)
    with_floors = [name for name in table.metrics if facts_of(name).has_floors]
    accuracy = table.column(with_floors[0]) if with_floors else None
    return letters_of(table, group.complete, accuracy)

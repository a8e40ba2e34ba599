"""The item table behind every number of a run: one row per item, one column per metric.

Scores, intervals, breakdowns, paired tests and the leaderboard all select rows from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from medtasks.benchmarks.error_kinds import derived_metrics
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.items import Joined, SampleView, Value, with_derived
from medtasks.core.errors import MedtasksError
from medtasks.runs.samples import Sample
from medtasks.scoring.answer_confidence import confidence_metrics
from medtasks.scoring.columns import (
    Mask,
    MetricColumn,
    PartKey,
    Reduced,
    Rows,
    column_of,
    reduced_columns,
    reduced_to,
)


@dataclass(frozen=True, eq=False)
class ItemTable:
    """The items of a task or group, sorted by id; incomplete ones, which are not scored, are the
    last.

    ``metrics`` and ``breakdowns`` are those to report, in display order; ``columns``, by metric,
    and ``groups`` may have more, for groups of tasks. ``groups`` has each item's keys by breakdown:
    none, one or several. ``reduced`` is how items that are judged by parts count in a part's group.

    What follows ``breakdowns`` is only there until the items are scored: ``statuses`` are those of
    an item's responses, repeats included; ``target`` is the correct option, empty if there are
    none, and ``chosen`` the selected one of the benchmark's options; ``options`` is how many a
    guess has (`Benchmark.option_count`).
    """

    benchmark: Benchmark
    metrics: tuple[str, ...]
    items: tuple[str, ...]
    tasks: tuple[str, ...]
    clusters: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    complete: Mask
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    columns: Mapping[str, MetricColumn]
    reduced: Mapping[PartKey, Reduced] = field(default_factory=dict)
    breakdowns: tuple[str, ...] = ()
    statuses: tuple[tuple[str, ...], ...] = ()
    target: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    options: tuple[int, ...] = ()

    @cached_property
    def codes(self) -> Rows:
        """Each item's cluster, as its index among the sorted names."""
        code_of = {name: code for code, name in enumerate(sorted(set(self.clusters)))}
        return np.array([code_of[name] for name in self.clusters], dtype=np.int64)

    @cached_property
    def unique(self) -> tuple[str, ...]:
        """Unique ids of the items: if two tasks of a group ask the same question, the second gets a
        number.
        """
        seen: Counter[str] = Counter()
        names = []
        for item in self.items:
            seen[item] += 1
            names.append(item if seen[item] == 1 else f"{item}#{seen[item]}")
        return tuple(names)

    def column(self, metric: str, part: str = "") -> MetricColumn:
        """The metric's column; with ``part``, as it counts in that group of
        `ScoringRules.parts`.
        """
        whole = self.columns[metric]
        reduced = self.reduced.get((metric, part))
        if reduced is None:
            return whole
        return reduced_to(whole, reduced, np.arange(len(self.items)))

    def rows_by_group(self, breakdown: str) -> dict[str, Rows]:
        """The rows of each group of a breakdown by sorted key, including incomplete items."""
        members: dict[str, list[int]] = {}
        for row, keys in enumerate(self.groups[breakdown]):
            for key in keys:
                members.setdefault(key, []).append(row)
        return {key: np.array(members[key], dtype=np.int64) for key in sorted(members)}


# --- a table from samples ---


def item_table(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    pooled: Sequence[str] = (),
) -> ItemTable:
    """The table of ``samples`` in any order, with the groups of ``breakdowns`` and the ``pooled``
    metrics.

    Raises:
        MedtasksError: there are no samples, the samples of one task have different metrics, or the
            benchmark has no such breakdown.
    """
    _require_scorable(samples, benchmark, breakdowns)
    ordered = sorted(samples, key=lambda sample: (sample.sample_id, sample.task))
    metrics = _common_metrics(ordered)
    task_of = {sample.sample_id: sample.task for sample in reversed(ordered)}
    joined = _scored_items(ordered, benchmark, task_of, pooled)
    metrics |= dict.fromkeys(joined.metrics)
    rows = _item_rows(joined, benchmark)
    values = _values_by_metric(rows, metrics)
    return ItemTable(
        benchmark,
        metrics=tuple(metrics),
        breakdowns=tuple(breakdowns),
        items=tuple(row.item_id for row in rows),
        tasks=tuple(task_of[row.first.sample_id] for row in rows),
        clusters=tuple(row.cluster for row in rows),
        samples=tuple(row.sample_ids for row in rows),
        statuses=tuple(row.statuses for row in rows),
        target=tuple(row.target for row in rows),
        chosen=tuple(row.chosen for row in rows),
        options=tuple(row.option_count for row in rows),
        complete=np.arange(len(rows)) < len(joined.items),
        groups=_groups_by_breakdown(rows, benchmark, breakdowns),
        columns={metric: column_of(metric, column) for metric, column in values.items()},
        reduced=reduced_columns(values),
    )


def _values_by_metric(
    rows: Sequence[_ItemRow], metrics: Iterable[str]
) -> dict[str, list[Value | None]]:
    """The value of each row by metric; None if the item has none."""
    values = {}
    for metric in metrics:
        values[metric] = [row.values.get(metric) for row in rows]
    return values


def _groups_by_breakdown(
    rows: Sequence[_ItemRow], benchmark: Benchmark, breakdowns: Sequence[str]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The keys of each row's groups by breakdown, taken from the item's first sample."""
    groups = {}
    for name in breakdowns:
        keys_of = benchmark.breakdowns[name]
        groups[name] = tuple(keys_of(row.first) for row in rows)
    return groups


def _require_scorable(
    samples: Sequence[Sample], benchmark: Benchmark, breakdowns: Sequence[str]
) -> None:
    """Refuse an empty selection of samples, and breakdowns that the benchmark does not have."""
    if not samples:
        raise MedtasksError(
            f"{benchmark.name}: there is no sample to score; a score of nothing is not 0."
        )
    for breakdown in breakdowns:
        if breakdown not in benchmark.breakdowns:
            raise MedtasksError(
                f"{benchmark.name}: breakdown {breakdown!r} is unknown; "
                f"choose from {', '.join(benchmark.breakdowns)}."
            )


def _common_metrics(samples: Sequence[Sample]) -> dict[str, None]:
    """The metrics of all tasks, in order; all samples of a task must have the same."""
    first_of_task: dict[str, Sample] = {}
    for sample in samples:
        first = first_of_task.setdefault(sample.task, sample)
        require_same_metrics(sample.sample_id, sample.task, sample.scores, first.scores)
    metrics: dict[str, None] = {}
    for first in first_of_task.values():
        metrics |= dict.fromkeys(first.scores)
    return metrics


def require_same_metrics(
    sample_id: str, task: str, metrics: Iterable[str], expected: Iterable[str]
) -> None:
    """Refuse a sample whose metrics differ from those of the task's others."""
    if list(metrics) != list(expected):
        raise MedtasksError(
            f"sample {sample_id} of {task} has the metrics {list(metrics)}, expected "
            f"{list(expected)} as in the others; score the directory again."
        )


def _scored_items(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    task_of: Mapping[str, str],
    pooled: Sequence[str],
) -> Joined:
    """The items of the samples, with derived metrics."""
    derived = [*confidence_metrics(samples), derived_metrics(benchmark, task_of, pooled)]
    views = [sample.view() for sample in samples]
    return with_derived(joined_items(benchmark, views), derived)


@dataclass(frozen=True, slots=True)
class _ItemRow:
    """An item, its samples as scoring sees them, and its values; none of an incomplete item."""

    item_id: str
    cluster: str
    views: Sequence[SampleView]
    values: Mapping[str, Value]
    benchmark: Benchmark

    @property
    def first(self) -> SampleView:
        return self.views[0]

    @property
    def document(self) -> Mapping[str, Any]:
        return self.first.document

    @property
    def sample_ids(self) -> tuple[str, ...]:
        return tuple(view.sample_id for view in self.views)

    @property
    def statuses(self) -> tuple[str, ...]:
        """The statuses of all responses, repeats included."""
        statuses: list[str] = []
        for view in self.views:
            statuses += (view.status, *view.further)
        return tuple(statuses)

    @property
    def option_count(self) -> int:
        return self.benchmark.option_count(self.document)

    @property
    def target(self) -> str:
        """The correct option; empty without options."""
        if self.benchmark.options or self.option_count:
            return str(self.document["target"])
        return ""

    @property
    def chosen(self) -> str:
        """The selected one of the benchmark's options; empty if it has none."""
        return self.first.filtered if self.benchmark.options else ""


def _item_rows(joined: Joined, benchmark: Benchmark) -> list[_ItemRow]:
    """The items by id, then the incomplete ones."""
    rows = []
    for item in sorted(joined.items, key=lambda item: item.item_id):
        rows.append(_ItemRow(item.item_id, item.cluster, item.samples, item.values, benchmark))
    for name, views in joined.incomplete.items():
        rows.append(_ItemRow(name, views[0].cluster, views, {}, benchmark))
    return rows

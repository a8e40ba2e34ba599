"""The columnar table behind every number of a run: one row per item, one column per metric.

Scores, intervals, breakdowns, paired tests and the leaderboard all select rows from it. A task's table is built from
its samples once; a group's table pools those of its tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np

from medtasks.benchmarks.declared_errors import declared_errors, declared_metrics
from medtasks.benchmarks.errors import pooled_metrics
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import Benchmark, SampleView, Value, with_derived
from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.metrics.registry import get_metric
from medtasks.runs.column import Column, Lazy, Mask, Rows, column_of, empty_column, stacked
from medtasks.runs.confidence import confidence_metrics
from medtasks.runs.samples import Sample


@lru_cache(maxsize=1024)
def shared(texts: tuple[Any, ...]) -> tuple[Any, ...]:
    """``texts``, or an equal tuple from before: the runs of a leaderboard have the same items."""
    return texts


@dataclass(frozen=True)
class ItemTable:
    """The items of a task or group, sorted by id, incomplete ones last.

    All fields but ``metrics``, ``columns`` and ``groups`` have one entry per row. ``complete`` is False for a streaming
    item with rounds that were not asked: it is not scored. ``metrics`` are those of the samples and the requested
    pooled ones, in display order; ``columns`` may have more, for groups. ``groups`` has each item's keys by breakdown:
    none, one or several. ``samples`` are an item's sample ids, several for a streaming item.

    What follows is only there until the items are scored: ``statuses`` are those of an item's responses, repeats
    included; ``target`` and ``chosen`` are the correct and the selected option, empty if the benchmark has no options;
    ``options`` is how many a guess has (`Benchmark.option_count`).
    """

    metrics: tuple[str, ...]
    items: tuple[str, ...]
    tasks: tuple[str, ...]
    clusters: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    complete: Mask
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    columns: Mapping[str, Column]
    statuses: tuple[tuple[str, ...], ...] = ()
    target: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    options: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def codes(self) -> Rows:
        """Each item's cluster, as its index among the sorted names."""
        number = {name: code for code, name in enumerate(sorted(set(self.clusters)))}
        return np.array([number[name] for name in self.clusters], dtype=np.int64)

    @cached_property
    def answers(self) -> list[tuple[str, str, str]]:
        """Each item's target, selected option and first status."""
        return [*zip(self.target, self.chosen, (statuses[0] for statuses in self.statuses), strict=True)]

    @cached_property
    def unique(self) -> tuple[str, ...]:
        """Unique ids of the items: if two tasks of a group ask the same question, the second gets a number."""
        seen: Counter[str] = Counter()
        found = []
        for item in self.items:
            seen[item] += 1
            found.append(item if seen[item] == 1 else f"{item}#{seen[item]}")
        return tuple(found)

    def rows_by_group(self, benchmark: Benchmark, breakdown: str) -> dict[str, Rows]:
        """The rows of each group of a breakdown by sorted key, including incomplete items.

        Raises:
            MedtasksError: the benchmark has no such breakdown.
        """
        if breakdown not in benchmark.breakdowns:
            raise MedtasksError(
                f"{benchmark.name}: breakdown {breakdown!r} is unknown; choose from {', '.join(benchmark.breakdowns)}."
            )
        members: dict[str, list[int]] = {}
        for row, keys in enumerate(self.groups[breakdown]):
            for key in keys:
                members.setdefault(key, []).append(row)
        return {key: np.array(members[key], dtype=np.int64) for key in sorted(members)}

    def part(self, benchmark: Benchmark, breakdown: str, key: str, metric: str) -> Column:
        """The metric's column as it counts in one group; in a group of `Benchmark.parts`, that part alone."""
        column = self.columns[metric]
        return column.part(key) if breakdown == benchmark.parts else column


def refuse_unknown_names(spec: TaskSpec, benchmark: Benchmark) -> None:
    """Find out before a run what would end the scoring after it.

    Raises:
        UsageError: the task or group names a breakdown or a pooled metric that the benchmark does not have.
        MedtasksError: a kind of error that the task declares has a name that cannot be used.
    """
    rates = () if benchmark.errors is None else (rate.name for rate in benchmark.errors.rates)
    given = {"breakdowns": spec.metadata.breakdowns, "pooled": spec.metadata.pooled}
    known = {"breakdowns": (*benchmark.breakdowns,), "pooled": (*benchmark.pooled, *rates)}
    for key, names in given.items():
        if unknown := [name for name in names if name not in known[key]]:
            expected = f"expected one of {', '.join(known[key])}" if known[key] else f"but {benchmark.name} has none"
            raise UsageError(f"{spec.name}: metadata.{key} names {unknown[0]!r}, {expected}; correct {spec.path.name}.")
    declared_errors(spec.name, benchmark)


def item_table(
    samples: Sequence[Sample], benchmark: Benchmark, breakdowns: Sequence[str] = (), pooled: Sequence[str] = ()
) -> ItemTable:
    """The table of ``samples`` in any order, with the groups of ``breakdowns`` and the ``pooled`` metrics.

    Raises:
        MedtasksError: there are no samples, the samples of one task have different metrics, or the benchmark has no
            such breakdown.
    """
    if not samples:
        raise MedtasksError(f"{benchmark.name}: there is no sample to score; a score of nothing is not 0.")
    ordered = sorted(samples, key=lambda sample: (sample.sample_id, sample.task))
    _check_metrics(ordered)
    for breakdown in breakdowns:
        if breakdown not in benchmark.breakdowns:
            raise MedtasksError(
                f"{benchmark.name}: breakdown {breakdown!r} is unknown; choose from {', '.join(benchmark.breakdowns)}."
            )
    task_of = {sample.sample_id: sample.task for sample in reversed(ordered)}
    derived = (*confidence_metrics(ordered), *declared_metrics(benchmark, task_of), pooled_metrics(benchmark, pooled))
    joined = with_derived(joined_items(benchmark, [sample.view() for sample in ordered]), derived)
    items = sorted(joined.items, key=lambda item: item.item_id)
    whole: list[tuple[str, str, Sequence[SampleView]]] = [(one.item_id, one.cluster, one.samples) for one in items]
    rows = [*whole, *((name, views[0].cluster, views) for name, views in joined.incomplete.items())]
    values = [item.values for item in items]
    filler: list[Value | None] = [None] * (len(rows) - len(items))
    named = [name for sample in ordered for name in sample.scores]
    metrics = tuple(dict.fromkeys([*named, *joined.metrics]))
    firsts = [views[0] for _, _, views in rows]
    lettered = bool(benchmark.options)
    return ItemTable(
        metrics=metrics,
        items=tuple(name for name, _, _ in rows),
        tasks=tuple(task_of[first.sample_id] for first in firsts),
        clusters=tuple(cluster for _, cluster, _ in rows),
        samples=tuple(tuple(view.sample_id for view in views) for _, _, views in rows),
        statuses=tuple(
            tuple(status for view in views for status in (view.status, *view.further)) for _, _, views in rows
        ),
        target=tuple(str(first.document["target"]) if lettered else "" for first in firsts),
        chosen=tuple(first.filtered if lettered else "" for first in firsts),
        options=np.array([benchmark.option_count(first.document) for first in firsts], dtype=np.int64),
        complete=np.arange(len(rows)) < len(items),
        groups={name: tuple(benchmark.breakdowns[name](first) for first in firsts) for name in breakdowns},
        columns={name: column_of(name, [*(row.get(name) for row in values), *filler]) for name in metrics},
    )


def _check_metrics(samples: Sequence[Sample]) -> None:
    of_task: dict[str, Sample] = {}
    for sample in samples:
        first = of_task.setdefault(sample.task, sample)
        _check_names(sample.sample_id, sample.task, sample.scores, first.scores)


def _check_names(sample_id: str, task: str, found: Iterable[str], expected: Iterable[str]) -> None:
    if list(found) != list(expected):
        raise MedtasksError(
            f"sample {sample_id} of {task} has the metrics {list(found)}, expected {list(expected)} as in the others; "
            "score the directory again."
        )


def pooled_table(tables: Sequence[ItemTable], pooled: Sequence[str] = ()) -> ItemTable:
    """The table of a group, from those of its tasks, with the ``pooled`` metrics that their columns have.

    Its columns are put together on each access: a leaderboard has many tables and ranks by few metrics.
    """
    tables = sorted(tables, key=lambda one: (one.samples[0][0], one.tasks[0]))  # by their first sample
    items = list(chain.from_iterable(table.items for table in tables))
    tasks = list(chain.from_iterable(table.tasks for table in tables))
    complete = np.concatenate([table.complete for table in tables])
    order = np.array(sorted(range(len(items)), key=lambda row: (not complete[row], items[row], tasks[row])))

    def in_order(rows: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
        whole = list(chain.from_iterable(rows))
        return shared(tuple(whole[row] for row in order.tolist())) if whole else ()

    def column(metric: str) -> Column:
        width = get_metric(metric).width
        parts = [table.columns.get(metric) or empty_column(len(table.items), width) for table in tables]
        return stacked(parts).take(order)

    breakdowns = [name for name in tables[0].groups if all(name in table.groups for table in tables)]
    metrics = tuple(dict.fromkeys([*chain.from_iterable(table.metrics for table in tables), *pooled]))
    texts = ("items", "tasks", "clusters", "samples", "statuses", "target", "chosen")
    options = np.concatenate([table.options for table in tables])
    return ItemTable(
        metrics=metrics,
        **{name: in_order(getattr(table, name) for table in tables) for name in texts},
        options=options[order] if len(options) else options,
        complete=complete[order],
        groups={name: in_order(table.groups[name] for table in tables) for name in breakdowns},
        columns=Lazy(metrics, column),
    )


def joined_parts(parts: Sequence[ItemTable]) -> ItemTable:
    """The table of a task, from those of parts of its samples.

    Raises:
        MedtasksError: the samples have different metrics.
    """
    first = parts[0]
    for part in parts:
        _check_names(part.samples[0][0], part.tasks[0], part.metrics, first.metrics)
    if len(parts) == 1:
        return first
    table = pooled_table(parts, tuple(first.columns))
    return replace(table, metrics=first.metrics, columns={name: table.columns[name] for name in first.columns})

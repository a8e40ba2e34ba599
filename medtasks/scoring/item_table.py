"""The item table behind every number of a run: one row per item, one column per metric.

Scores, intervals, breakdowns, paired tests and the leaderboard all select rows from it.
"""

from __future__ import annotations

from collections import Counter, UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from medtasks.benchmarks.error_kinds import declared_errors, derived_metrics
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import Benchmark, SampleView, Value, with_derived
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec, load_specs
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.runs.samples import Sample, SampleFile
from medtasks.scoring.scored_samples import confidence_metrics, gives_confidence, has_models

Rows = npt.NDArray[np.int64]
"""Row numbers of items."""
Mask = npt.NDArray[np.bool_]
Key = tuple[str, str]
"""A metric, and the part to which items judged by parts (`Benchmark.parts`) are reduced."""
ABSENT, PRESENT, FAILED, PENDING, AWAITING = range(5)
"""The states of an item: without a value of the metric, with one, without a response, without a
verdict, and without one because no judge has been asked.
"""
PART = 4096
"""Samples of a task that are scored together: few, to limit memory."""

K = TypeVar("K")
T = TypeVar("T")


class Lazy(UserDict[K, T]):
    """A mapping of ``keys`` whose values are made on each access."""

    def __init__(self, keys: Iterable[K], make: Callable[[K], T]) -> None:
        self.data = dict.fromkeys(keys)  # type: ignore[assignment]
        self._make = make

    def __getitem__(self, key: K) -> T:
        if key not in self.data:
            raise KeyError(key)
        return self._make(key)


@lru_cache(maxsize=1024)
def shared(texts: tuple[Any, ...]) -> tuple[Any, ...]:
    """``texts``, or an equal tuple from before: the runs of a leaderboard have the same items."""
    return texts


# --- one metric of all items ---


@dataclass(frozen=True)
class Column:
    """One metric of n items.

    ``statistics`` ``(n, width)`` are NaN where they are open. ``ranges`` ``(n, 2, width)`` are the
    lowest and the highest statistics of open items, NaN without a range; None if no item has one.
    ``judge`` is the judge that was asked about each item, empty for none; None if none was asked at
    all. ``repeats`` has the statistics of every repeat ``(n, repeats, width)``; None unless all
    items have the same number, and more than one.
    """

    statistics: Array
    state: npt.NDArray[np.int8]
    ranges: Array | None = None
    judge: npt.NDArray[np.str_] | None = None
    repeats: Array | None = None

    @cached_property
    def known(self) -> Mask:
        return np.asarray(~np.isnan(self.statistics).all(axis=1))

    @property
    def present(self) -> Mask:
        """Items with a value of the metric."""
        return np.asarray(self.state != ABSENT)

    @cached_property
    def applies(self) -> Mask:
        """Items that the metric applies to: a mean over no observations is excluded."""
        counted = self.statistics[:, 1] != 0 if self.statistics.shape[1] == 2 else True
        return np.asarray(self.present & counted)

    def judges_of(self, rows: Rows) -> list[str]:
        """The judges that contributed to these items, sorted."""
        if self.judge is None:
            return []
        return [str(name) for name in np.unique(self.judge[rows]) if name]

    def bounds(self, rows: Rows) -> tuple[Array, Array]:
        """Statistics of these items, with open ones at their lowest and at their highest, NaN
        without a range.
        """
        statistics, known = self.statistics[rows], self.known[rows][:, None]
        if self.ranges is None:
            return statistics, statistics
        low, high = (np.where(known, statistics, self.ranges[rows, side]) for side in (0, 1))
        return low, high

    def take(self, rows: Rows) -> Column:
        arrays = (self.statistics, self.state, self.ranges, self.judge, self.repeats)
        return Column(*(None if array is None else array[rows] for array in arrays))  # type: ignore[arg-type]


def stacked(columns: Sequence[Column]) -> Column:
    """The columns of several tables, concatenated."""
    return Column(
        np.concatenate([column.statistics for column in columns]),
        np.concatenate([column.state for column in columns]),
        ranges=_stacked_ranges(columns),
        judge=_stacked_judges(columns),
        repeats=_stacked_repeats(columns),
    )


def _stacked_ranges(columns: Sequence[Column]) -> Array | None:
    if all(column.ranges is None for column in columns):
        return None
    ranges = []
    for column in columns:
        items, width = column.statistics.shape
        blank = np.full((items, 2, width), np.nan)
        ranges.append(blank if column.ranges is None else column.ranges)
    return np.concatenate(ranges)


def _stacked_judges(columns: Sequence[Column]) -> npt.NDArray[np.str_] | None:
    if all(column.judge is None for column in columns):
        return None
    judges = []
    for column in columns:
        judges.append(np.full(len(column.state), "") if column.judge is None else column.judge)
    return np.concatenate(judges)


def _stacked_repeats(columns: Sequence[Column]) -> Array | None:
    """The repeats of all columns; None unless all have the same number."""
    repeats = []
    for column in columns:
        if column.repeats is None:
            return None
        repeats.append(column.repeats)
    numbers = {array.shape[1] for array in repeats}
    return np.concatenate(repeats) if len(numbers) == 1 else None


def column_of(metric: str, values: Sequence[Value | None]) -> Column:
    """The column of one value per item; None for an item without a value."""
    width, nothing = get_metric(metric).width, Value()
    statistics, lows, highs, repeats, asked, _, failed = zip(
        *(nothing if value is None else value for value in values), strict=True
    )
    blank = (np.nan,) * width
    ranges = None
    if any(lows):
        ends = [(blank, blank) if None in pair else pair for pair in zip(lows, highs, strict=True)]
        ranges = _array(metric, [*chain.from_iterable(ends)], width).reshape(len(values), 2, width)
    state = np.full(len(values), PRESENT, dtype=np.int8)
    if None in statistics or any(failed):
        for row, value in enumerate(values):
            if value is None:
                state[row] = ABSENT
            elif value.failed:
                state[row] = FAILED
            elif value.pending:
                state[row] = PENDING if value.judge is not None else AWAITING
    lengths = set(map(len, repeats))
    return Column(
        _array(metric, [blank if row is None else row for row in statistics], width),
        state,
        ranges=ranges,
        judge=np.array([judge or "" for judge in asked]) if any(asked) else None,
        repeats=np.array(repeats, dtype=np.float64)
        if len(lengths) == 1 and max(lengths) > 1
        else None,
    )


def _array(metric: str, rows: Sequence[tuple[float, ...]], width: int) -> Array:
    """The rows as an array, several times as fast as by `np.array`."""
    if wrong := set(map(len, rows)) - {width}:
        raise DataError(
            f"statistics of {metric} have {min(wrong)} numbers, expected {width}; score the directory again: "
            "medtasks score DIR --out NEW_DIR."
        )
    return np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(
        len(rows), width
    )


def reduced_columns(values: Mapping[str, Sequence[Value | None]]) -> dict[Key, Reduced]:
    """By metric and part, the items that are judged by parts and have this one, reduced to it."""
    members: dict[Key, dict[int, Value]] = {}
    for metric, several in values.items():
        for row, value in enumerate(several):
            for part in () if value is None else value.parts:
                members.setdefault((metric, part), {})[row] = value.parts[part]  # type: ignore[union-attr]
    return {
        key: (np.array([*rows]), column_of(key[0], [*rows.values()]))
        for key, rows in members.items()
    }


def reduced_to(whole: Column, reduced: Reduced | None, rows: Rows) -> Column:
    """These rows of a column, of which those in ``reduced`` count as they do there."""
    taken = whole.take(rows)
    if reduced is None:
        return taken
    items, column = reduced
    place = np.searchsorted(items, rows).clip(max=len(items) - 1)
    order = np.where(items[place] == rows, len(rows) + place, np.arange(len(rows)))
    return stacked([taken, column]).take(order)


def without_value(table: Array) -> Mask:
    """Which rows of statistics ``(items, width)`` do not count: those of NaN, and means over no
    observations.
    """
    uncounted = table[:, 1] == 0 if table.shape[1] == 2 else False
    return np.asarray(np.isnan(table).any(axis=1) | uncounted)


Reduced: TypeAlias = "tuple[Rows, Column]"
"""The rows of the items that have a part, ascending, and their column."""


# --- all items ---


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
    columns: Mapping[str, Column]
    reduced: Mapping[Key, Reduced] = field(default_factory=dict)
    breakdowns: tuple[str, ...] = ()
    statuses: tuple[tuple[str, ...], ...] = ()
    target: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    options: tuple[int, ...] = ()

    @cached_property
    def codes(self) -> Rows:
        """Each item's cluster, as its index among the sorted names."""
        number = {name: code for code, name in enumerate(sorted(set(self.clusters)))}
        return np.array([number[name] for name in self.clusters], dtype=np.int64)

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

    def column(self, metric: str, part: str = "") -> Column:
        """The metric's column; with ``part``, as it counts in that group of `Benchmark.parts`."""
        whole, reduced = self.columns[metric], self.reduced.get((metric, part))
        return whole if reduced is None else reduced_to(whole, reduced, np.arange(len(self.items)))

    def rows_by_group(self, breakdown: str) -> dict[str, Rows]:
        """The rows of each group of a breakdown by sorted key, including incomplete items."""
        members: dict[str, list[int]] = {}
        for row, keys in enumerate(self.groups[breakdown]):
            for key in keys:
                members.setdefault(key, []).append(row)
        return {key: np.array(members[key], dtype=np.int64) for key in sorted(members)}


def refuse_unknown_names(spec: TaskSpec, benchmark: Benchmark) -> None:
    """Refuse before a run what would end the scoring after it."""
    rates = () if benchmark.errors is None else (rate.name for rate in benchmark.errors.rates)
    given = {"breakdowns": spec.metadata.breakdowns, "pooled": spec.metadata.pooled}
    known = {"breakdowns": (*benchmark.breakdowns,), "pooled": (*benchmark.pooled, *rates)}
    for key, names in given.items():
        if unknown := [name for name in names if name not in known[key]]:
            expected = (
                f"expected one of {', '.join(known[key])}"
                if known[key]
                else f"but {benchmark.name} has none"
            )
            raise UsageError(
                f"{spec.name}: metadata.{key} names {unknown[0]!r}, {expected}; correct {spec.path.name}."
            )
    declared_errors(spec.name, benchmark)


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
    if not samples:
        raise MedtasksError(
            f"{benchmark.name}: there is no sample to score; a score of nothing is not 0."
        )
    for breakdown in breakdowns:
        if breakdown not in benchmark.breakdowns:
            raise MedtasksError(
                f"{benchmark.name}: breakdown {breakdown!r} is unknown; choose from {', '.join(benchmark.breakdowns)}."
            )
    ordered = sorted(samples, key=lambda sample: (sample.sample_id, sample.task))
    first_of_task: dict[str, Sample] = {}
    for sample in ordered:
        first = first_of_task.setdefault(sample.task, sample)
        _check_names(sample.sample_id, sample.task, sample.scores, first.scores)
    task_of = {sample.sample_id: sample.task for sample in reversed(ordered)}
    derived = (*confidence_metrics(ordered), derived_metrics(benchmark, task_of, pooled))
    joined = with_derived(joined_items(benchmark, [sample.view() for sample in ordered]), derived)
    items = sorted(joined.items, key=lambda item: item.item_id)
    rows = [_ItemRow(item.item_id, item.cluster, item.samples) for item in items]
    for name, views in joined.incomplete.items():
        rows.append(_ItemRow(name, views[0].cluster, views))
    names: dict[str, None] = {}
    for first in first_of_task.values():
        names |= dict.fromkeys(first.scores)
    metrics = tuple(names | dict.fromkeys(joined.metrics))
    filler: list[Value | None] = [None] * len(joined.incomplete)
    values = {name: [*(item.values.get(name) for item in items), *filler] for name in metrics}
    documents = [row.views[0].document for row in rows]
    has_letters = bool(benchmark.options)
    options = tuple(benchmark.option_count(document) for document in documents)
    targets = []
    for document, count in zip(documents, options, strict=True):
        targets.append(str(document["target"]) if has_letters or count else "")
    groups = {}
    for name in breakdowns:
        keys_of = benchmark.breakdowns[name]
        groups[name] = tuple(keys_of(row.views[0]) for row in rows)
    return ItemTable(
        benchmark,
        metrics=metrics,
        breakdowns=tuple(breakdowns),
        items=tuple(row.item_id for row in rows),
        tasks=tuple(task_of[row.views[0].sample_id] for row in rows),
        clusters=tuple(row.cluster for row in rows),
        samples=tuple(row.sample_ids for row in rows),
        statuses=tuple(row.statuses for row in rows),
        target=tuple(targets),
        chosen=tuple(row.views[0].filtered if has_letters else "" for row in rows),
        options=options,
        complete=np.arange(len(rows)) < len(items),
        groups=groups,
        columns={name: column_of(name, several) for name, several in values.items()},
        reduced=reduced_columns(values),
    )


class _ItemRow(NamedTuple):
    """An item of a table, and its samples as scoring sees them."""

    item_id: str
    cluster: str
    views: Sequence[SampleView]

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


def _check_names(sample_id: str, task: str, names: Iterable[str], expected: Iterable[str]) -> None:
    if list(names) != list(expected):
        raise MedtasksError(
            f"sample {sample_id} of {task} has the metrics {list(names)}, expected "
            f"{list(expected)} as in the others; score the directory again."
        )


def pooled_table(
    tables: Sequence[ItemTable], breakdowns: Sequence[str] = (), pooled: Sequence[str] = ()
) -> ItemTable:
    """The table of a group, from those of its tasks, with the ``pooled`` metrics that their columns
    have; columns are put together on access, because a leaderboard ranks by few of them.
    """
    tables = sorted(
        tables, key=lambda one: (one.samples[0][0], one.tasks[0])
    )  # by their first sample
    items = list(chain.from_iterable(table.items for table in tables))
    tasks = list(chain.from_iterable(table.tasks for table in tables))
    complete = np.concatenate([table.complete for table in tables])
    order = np.array(
        sorted(range(len(items)), key=lambda row: (not complete[row], items[row], tasks[row]))
    )

    def in_order(rows: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
        whole = list(chain.from_iterable(rows))
        return shared(tuple(whole[row] for row in order.tolist())) if whole else ()

    def column(metric: str) -> Column:
        width, columns = get_metric(metric).width, []
        for table in tables:
            if metric in table.columns:
                columns.append(table.columns[metric])
            else:
                absent = np.full(len(table.items), ABSENT, dtype=np.int8)
                columns.append(Column(np.full((len(absent), width), np.nan), absent))
        return stacked(columns).take(order)

    places = np.split(np.argsort(order), np.cumsum([len(table.items) for table in tables])[:-1])
    reducing = [
        (place, table.reduced) for place, table in zip(places, tables, strict=True) if table.reduced
    ]

    def reduced(key: Key) -> Reduced:
        several = [(place, parts[key]) for place, parts in reducing if key in parts]
        rows = np.concatenate([place[items] for place, (items, _) in several])
        ascending = np.argsort(rows)
        return rows[ascending], stacked([column for _, (_, column) in several]).take(ascending)

    metrics = tuple(
        dict.fromkeys([*chain.from_iterable(table.metrics for table in tables), *pooled])
    )
    shared_groups = [
        name for name in tables[0].groups if all(name in table.groups for table in tables)
    ]
    by_row = ("items", "tasks", "clusters", "samples", "statuses", "target", "chosen", "options")
    return ItemTable(
        tables[0].benchmark,
        metrics=metrics,
        breakdowns=tuple(breakdowns),
        **{name: in_order(getattr(table, name) for table in tables) for name in by_row},
        complete=complete[order],
        groups={name: in_order(table.groups[name] for table in tables) for name in shared_groups},
        columns=Lazy(metrics, column),
        reduced=Lazy(chain.from_iterable(table.reduced for table in tables), reduced),
    )


# --- the tables of a run ---


class RunTables:
    """The tables of a run's tasks and groups, built on first use from samples by task, or ``made``
    earlier.
    """

    def __init__(
        self,
        samples: Mapping[str, Sequence[Sample]],
        made: Mapping[str, ItemTable] = MappingProxyType({}),
    ) -> None:
        self._samples = samples
        self.made = dict(made)
        """By task or group, those made of samples so far; all others are pooled from them."""
        self._pooled: dict[tuple[str, tuple[str, ...]], ItemTable] = {}
        self._parts: dict[str, list[ItemTable]] = {}

    def add(self, task: str, samples: Sequence[Sample]) -> None:
        """Build the table of the next part of a task (:func:`in_parts`), which then needs none of
        its samples: it has what the task's groups need, too.
        """
        spec = load_spec(task)
        facts, benchmark = spec.metadata, spec.benchmark
        breakdowns = dict.fromkeys(facts.breakdowns)
        pooled = dict.fromkeys(facts.pooled)
        for group in load_specs().values():
            if group.kind == "group" and task in leaf_tasks(group.name):
                breakdowns |= dict.fromkeys(group.metadata.breakdowns)
                if benchmark.repeatable:
                    pooled |= dict.fromkeys(group.metadata.pooled)
        table = item_table(samples, benchmark, tuple(breakdowns), tuple(pooled))
        own = {*facts.pooled, *samples[0].scores}
        metrics = tuple(name for name in table.metrics if name not in pooled or name in own)
        self._parts.setdefault(task, []).append(
            replace(table, metrics=metrics, breakdowns=tuple(facts.breakdowns))
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._samples) or tuple(
            name for name in self.made if load_spec(name).kind == "task"
        )

    def of(self, name: str, members: Sequence[str] = ()) -> ItemTable:
        """The table of a task, or of a group over its ``members``: pooled, unless the benchmark has
        its own ``join``, which may join samples of several tasks.
        """
        key, spec = (name, tuple(members)), load_spec(name)
        facts = spec.metadata
        if name in self.made:
            return self.made[name]
        if key[1] in ((), (name,)):
            self.made[name] = self._of_task(spec)
        elif not spec.benchmark.repeatable:
            samples = [sample for member in members for sample in self._samples[member]]
            self.made[name] = item_table(samples, spec.benchmark, facts.breakdowns, facts.pooled)
        elif key not in self._pooled:
            self._pooled[key] = pooled_table(
                [self.of(member) for member in members], facts.breakdowns, facts.pooled
            )
        return self.made.get(name) or self._pooled[key]

    def _of_task(self, spec: TaskSpec) -> ItemTable:
        if spec.name not in self._parts:
            for part in in_parts(spec, self._samples[spec.name]):
                self.add(spec.name, part)
        parts = self._parts.pop(spec.name)
        first = parts[0]
        for table in parts[1:]:
            _check_names(table.samples[0][0], table.tasks[0], table.metrics, first.metrics)
        if len(parts) == 1:
            return first
        whole = pooled_table(parts, first.breakdowns, [*first.columns])
        # made now, because the tables that they are put together from take as much memory
        return replace(
            whole, metrics=first.metrics, columns={**whole.columns}, reduced={**whole.reduced}
        )


def in_parts(spec: TaskSpec, samples: Sequence[Sample] | SampleFile) -> Iterator[list[Sample]]:
    """The samples of a task in parts that are scored one after the other; as a whole if its items
    need all of them.
    """
    whole = bool(spec.metadata.varied) or not spec.benchmark.repeatable or has_models(spec)
    # if one sample has probabilities, the others lack theirs
    if not whole and spec.metadata.confidence:
        if isinstance(samples, SampleFile):
            whole = samples.confident
        else:
            whole = any(gives_confidence(sample) for sample in samples)
    return batches(samples, whole=whole)


def batches(samples: Iterable[Sample], *, whole: bool = False) -> Iterator[list[Sample]]:
    """The samples in lists of `PART`, or all in one; the first is empty if there are none."""
    rest = iter(samples)
    size = None if whole else PART
    yield list(islice(rest, size))
    while True:
        batch = list(islice(rest, size))
        if not batch:
            return
        yield batch

"""The columnar table behind every number of a run: one row per item, one column per metric.

Scores, intervals, breakdowns, paired tests and the leaderboard all select rows from it. A task's table is built from
its samples once; a group's table pools those of its tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from medtasks.benchmarks.base import Benchmark, SampleView, Value, sample_items
from medtasks.benchmarks.errors import pooled_values
from medtasks.benchmarks.variants import joined_items
from medtasks.errors import DataError, MedtasksError
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array
from medtasks.registry import get_benchmark
from medtasks.results.confidence import with_confidences
from medtasks.results.samples import Sample
from medtasks.spec import leaf_tasks, load_spec, load_specs

Rows = npt.NDArray[np.int64]
"""Row numbers of items."""
Mask = npt.NDArray[np.bool_]
_NOBODY = -1


@dataclass(frozen=True)
class Column:
    """One metric of n items.

    ``statistics``, ``low`` and ``high`` are ``(n, width)``: the known statistics, or the range that they will be in;
    rows without are NaN. ``present`` marks the items with a value of the metric, ``failed`` those without a response,
    ``pending`` those without a verdict, ``awaiting`` those for which no judge has been asked. ``judge`` is the index in
    ``judges`` of the judge that was asked, negative if none was. ``repeats`` has the statistics of every repeat
    ``(n, repeats, width)``; None unless all items have the same number, and more than one. ``parts`` are the items'
    values within each group of `Benchmark.parts`, present where they differ from the whole.
    """

    statistics: Array
    low: Array
    high: Array
    present: Mask
    failed: Mask
    pending: Mask
    awaiting: Mask
    judge: Rows
    judges: tuple[str, ...] = ()
    repeats: Array | None = None
    parts: Mapping[str, Column] = field(default_factory=dict)

    @cached_property
    def known(self) -> Mask:
        """Items with statistics."""
        known: Mask = np.asarray(~np.isnan(self.statistics).all(axis=1))
        return known

    @cached_property
    def applies(self) -> Mask:
        """Items that the metric applies to: a mean over no observations is excluded."""
        applies: Mask = self.present & (self.statistics[:, 1] != 0) if self.statistics.shape[1] == 2 else self.present
        return applies

    @property
    def counted(self) -> Array:
        """``statistics`` with zeros, which do not change sums, in the rows of items without a value of the metric."""
        return self.statistics if self.present.all() else np.where(self.present[:, None], self.statistics, 0.0)

    def judges_of(self, rows: Rows) -> list[str]:
        """The judges that contributed to these items, sorted."""
        return [self.judges[code] for code in np.unique(self.judge[rows]).tolist() if code >= 0]

    def bounds(self, rows: Rows) -> tuple[Array, Array] | None:
        """Statistics of these items, with open ones at ``low`` and at ``high``; None if one of them has no range."""
        low, high = (
            np.where(self.known[rows][:, None], self.statistics[rows], side[rows]) for side in (self.low, self.high)
        )
        return None if np.isnan(low).any() or np.isnan(high).any() else (low, high)

    def part(self, key: str) -> Column:
        """The column in which items judged by parts are reduced to the part ``key``."""
        if key not in self.parts:
            return self
        part = self.parts[key]
        return _merged([self, part], [self.present & ~part.present, part.present])

    def take(self, rows: Rows) -> Column:
        """The column restricted to these items."""
        return replace(
            self,
            **{name: _rows(getattr(self, name), rows) for name in _ARRAYS},
            repeats=None if self.repeats is None else self.repeats[rows],
            parts={key: part.take(rows) for key, part in self.parts.items()},
        )


_ARRAYS = ("statistics", "low", "high", "present", "failed", "pending", "awaiting", "judge")
TEXTS = ("items", "tasks", "clusters", "samples", "statuses", "target", "chosen")
"""The fields of a table with one text, or tuple of texts, per row."""


@lru_cache(maxsize=1024)
def shared(texts: tuple[Any, ...]) -> tuple[Any, ...]:
    """``texts``, or an equal tuple from before: the runs of a leaderboard have the same items."""
    return texts


def _empty(items: int, width: int) -> Column:
    """The column of a metric that no item has a value of."""

    def mask() -> Mask:
        return np.zeros(items, dtype=bool)

    no_value = _blank(items, width)
    judge = np.full(items, _NOBODY, dtype=np.int64)
    return Column(no_value, no_value, no_value, mask(), mask(), mask(), mask(), judge)


def _blank(items: int, width: int) -> Array:
    """An array of NaN that takes no memory."""
    return np.broadcast_to(np.nan, (items, width))


def _is_blank(array: npt.NDArray[Any]) -> bool:
    return array.ndim == 2 and not any(array.strides)


def _rows(array: npt.NDArray[Any], rows: Rows) -> Any:
    return _blank(len(rows), array.shape[1]) if _is_blank(array) else array[rows]


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    if all(map(_is_blank, arrays)):
        return _blank(sum(map(len, arrays)), arrays[0].shape[1])
    return np.concatenate(arrays)


def _statistics_alone(column: Column, rest: Column) -> Column:
    no_value = _blank(*column.statistics.shape)
    return replace(rest, statistics=_single(column.statistics), low=no_value, high=no_value, present=column.present)


def _single(table: Array) -> Array:
    """The table in single precision if that changes no number, as in counts."""
    single: Any = table.astype(np.float32)
    return single if np.array_equal(single, table, equal_nan=True) else table


def _merged(columns: Sequence[Column], masks: Sequence[Mask]) -> Column:
    """The rows that each column's mask selects, without repeats and parts."""
    empty = _empty(len(masks[0]), columns[0].statistics.shape[1])
    found = replace(empty, statistics=empty.statistics.copy(), low=empty.low.copy(), high=empty.high.copy())
    judges = tuple(sorted({judge for column in columns for judge in column.judges}))
    for column, mask in zip(columns, masks, strict=True):
        for name in _ARRAYS[:-1]:
            getattr(found, name)[mask] = getattr(column, name)[mask]
        found.judge[mask] = _renumbered(column, judges)[mask]
    return replace(found, judges=judges)


def _stacked(columns: Sequence[Column]) -> Column:
    """The columns of several tables, concatenated."""
    judges = tuple(sorted({judge for column in columns for judge in column.judges}))
    arrays = {name: _joined([getattr(column, name) for column in columns]) for name in _ARRAYS[:-1]}
    repeats = [column.repeats for column in columns]
    equal = all(one is not None for one in repeats) and len({one.shape[1] for one in repeats if one is not None}) == 1
    width = columns[0].statistics.shape[1]
    keys = dict.fromkeys(key for column in columns for key in column.parts)
    return Column(
        **arrays,
        judge=np.concatenate([_renumbered(column, judges) for column in columns]),
        judges=judges,
        repeats=np.concatenate([one for one in repeats if one is not None]) if equal else None,
        parts={
            key: _stacked([column.parts.get(key) or _empty(len(column.present), width) for column in columns])
            for key in keys
        },
    )


def _renumbered(column: Column, judges: Sequence[str]) -> Rows:
    codes = np.array([judges.index(judge) for judge in column.judges] + [_NOBODY], dtype=np.int64)
    return codes[column.judge]  # -1, no judge, selects the last code


def column_of(metric: str, values: Sequence[Value | None]) -> Column:
    """The column of one value per item; None for an item without a value.

    Raises:
        DataError: statistics do not have the metric's width.
    """
    width = get_metric(metric).width
    blank = (np.nan,) * width
    found = _empty(len(values), width)
    judges = tuple(sorted({value.judge for value in values if value is not None and value.judge is not None}))
    statistics: list[tuple[float, ...]] = [blank] * len(values)
    low: list[tuple[float, ...]] = []
    high: list[tuple[float, ...]] = []
    repeats: list[tuple[tuple[float, ...], ...]] = [()] * len(values)
    parts: dict[str, list[Value | None]] = {}
    for row, value in enumerate(values):
        if value is None:
            continue
        if value.statistics is not None:
            statistics[row] = value.statistics
        if value.low is not None and value.high is not None:
            low, high = low or [blank] * len(values), high or [blank] * len(values)
            low[row], high[row] = value.low, value.high
        if value.failed or value.statistics is None:
            found.failed[row], found.pending[row], found.awaiting[row] = value.failed, value.pending, value.awaiting
        if value.judge is not None:
            found.judge[row] = judges.index(value.judge)
        repeats[row] = value.repeats
        for key, part in value.parts.items():
            parts.setdefault(key, [None] * len(values))[row] = part
    for rows in (statistics, low, high):
        _check_width(metric, set(map(len, rows)), width)
    lengths = set(map(len, repeats))

    def array(rows: list[tuple[float, ...]]) -> Array:  # several times as fast as np.array
        return np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(len(rows), width)

    return replace(
        found,
        statistics=array(statistics),
        low=array(low) if low else found.low,
        high=array(high) if high else found.high,
        present=np.array([value is not None for value in values], dtype=bool),
        judges=judges,
        repeats=np.array(repeats, dtype=np.float64) if len(lengths) == 1 and max(lengths) > 1 else None,
        parts={key: column_of(metric, members) for key, members in parts.items()},
    )


def _check_width(metric: str, found: set[int], width: int) -> None:
    if wrong := found - {width}:
        raise DataError(
            f"statistics of {metric} have {min(wrong)} numbers, expected {width}; score the directory again: "
            "medtasks score DIR --out NEW_DIR."
        )


@dataclass(frozen=True)
class ItemTable:
    """The items of a task or group, sorted by id, incomplete ones last.

    All fields but ``metrics``, ``columns`` and ``groups`` have one entry per row. ``samples`` are an item's sample ids,
    several for a streaming item; ``statuses`` are those of its responses, repeats included. ``target`` and ``chosen``
    are the correct and the selected option, empty if the benchmark has no options. ``complete`` is False for a
    streaming item with rounds that were not asked: it is not scored. ``metrics`` are those of the samples and the
    requested pooled ones, in display order; ``columns`` may have more, for groups. ``groups`` has each item's keys by
    breakdown: none, one or several.
    """

    metrics: tuple[str, ...]
    items: tuple[str, ...]
    tasks: tuple[str, ...]
    clusters: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    statuses: tuple[tuple[str, ...], ...]
    target: tuple[str, ...]
    chosen: tuple[str, ...]
    complete: Mask
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    columns: Mapping[str, Column]

    @cached_property
    def codes(self) -> Rows:
        """Each item's cluster, as its index among the sorted names."""
        number = {name: code for code, name in enumerate(sorted(set(self.clusters)))}
        return np.array([number[name] for name in self.clusters], dtype=np.int64)

    @cached_property
    def unique(self) -> tuple[str, ...]:
        """Unique ids of the items: if two tasks of a group ask the same question, the second gets a number."""
        seen: Counter[str] = Counter()
        found = []
        for item in self.items:
            seen[item] += 1
            found.append(item if seen[item] == 1 else f"{item}#{seen[item]}")
        return tuple(found)

    def compact(self) -> ItemTable:
        """The table without what only scoring needs: statuses, and everything in columns but statistics.

        Statistics that are exact in single precision are stored so.
        """
        rest = _empty(len(self.items), 1)
        texts: dict[str, Any] = {name: shared(getattr(self, name)) for name in TEXTS if name != "statuses"}
        return replace(
            self,
            groups={name: shared(keys) for name, keys in self.groups.items()},
            statuses=((),) * len(self.items),
            columns=PackedColumns({name: _statistics_alone(column, rest) for name, column in self.columns.items()}),
            **texts,
        )

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


WIDE = 16
"""Columns with more statistics per item are packed: those of a histogram are almost all 0."""


class PackedColumns(Mapping[str, Column]):
    """``columns`` with the statistics of wide ones kept without zeros, and unpacked on each access."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        from scipy.sparse import csr_array  # slow to import

        wide = {name: one for name, one in columns.items() if one.statistics.shape[1] > WIDE}
        self._packed = {name: csr_array(one.statistics) for name, one in wide.items()}
        self._columns = {
            name: replace(one, statistics=_blank(*one.statistics.shape)) if name in wide else one
            for name, one in columns.items()
        }

    def __getitem__(self, metric: str) -> Column:
        column = self._columns[metric]
        return replace(column, statistics=self._packed[metric].toarray()) if metric in self._packed else column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


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
    joined = with_confidences(joined_items(benchmark, [sample.view() for sample in ordered]), ordered)
    items = sorted(joined.items, key=lambda item: item.item_id)
    whole: list[tuple[str, str, Sequence[SampleView]]] = [(one.item_id, one.cluster, one.samples) for one in items]
    rows = [*whole, *((name, views[0].cluster, views) for name, views in joined.incomplete.items())]
    values = [{**item.values, **pooled_values(benchmark, item, pooled)} for item in items]
    filler: list[Value | None] = [None] * (len(rows) - len(items))
    named = [name for sample in ordered for name in sample.scores]
    metrics = tuple(dict.fromkeys([*named, *joined.metrics, *pooled]))
    firsts = [views[0] for _, _, views in rows]
    options = bool(benchmark.options)
    return ItemTable(
        metrics=metrics,
        items=tuple(name for name, _, _ in rows),
        tasks=tuple(task_of[first.sample_id] for first in firsts),
        clusters=tuple(cluster for _, cluster, _ in rows),
        samples=tuple(tuple(view.sample_id for view in views) for _, _, views in rows),
        statuses=tuple(
            tuple(status for view in views for status in (view.status, *view.further)) for _, _, views in rows
        ),
        target=tuple(str(first.document["target"]) if options else "" for first in firsts),
        chosen=tuple(first.filtered if options else "" for first in firsts),
        complete=np.arange(len(rows)) < len(items),
        groups={name: tuple(benchmark.breakdowns[name](first) for first in firsts) for name in breakdowns},
        columns={name: column_of(name, [*(row.get(name) for row in values), *filler]) for name in metrics},
    )


def _check_metrics(samples: Sequence[Sample]) -> None:
    of_task: dict[str, Sample] = {}
    for sample in samples:
        first = of_task.setdefault(sample.task, sample)
        if list(sample.scores) != list(first.scores):
            raise MedtasksError(
                f"sample {sample.sample_id} of {sample.task} has the metrics {list(sample.scores)}, "
                f"expected {list(first.scores)} as in the others; score the directory again."
            )


def pooled_table(tables: Sequence[ItemTable], pooled: Sequence[str] = ()) -> ItemTable:
    """The table of a group, from those of its tasks, with the ``pooled`` metrics that their columns have.

    Its columns are built on access.
    """
    tables = sorted(tables, key=lambda one: (one.samples[0][0], one.tasks[0]))  # by their first sample
    items = list(chain.from_iterable(table.items for table in tables))
    tasks = list(chain.from_iterable(table.tasks for table in tables))
    complete = np.concatenate([table.complete for table in tables])
    order = np.array(sorted(range(len(items)), key=lambda row: (not complete[row], items[row], tasks[row])))

    def in_order(name: str) -> tuple[Any, ...]:
        whole = list(chain.from_iterable(getattr(table, name) for table in tables))
        return shared(tuple(whole[row] for row in order.tolist()))

    breakdowns = [name for name in tables[0].groups if all(name in table.groups for table in tables)]
    keys = {name: list(chain.from_iterable(table.groups[name] for table in tables)) for name in breakdowns}
    metrics = tuple(dict.fromkeys([*chain.from_iterable(table.metrics for table in tables), *pooled]))
    return ItemTable(
        metrics=metrics,
        **{name: in_order(name) for name in TEXTS},
        complete=complete[order],
        groups={name: shared(tuple(rows[row] for row in order.tolist())) for name, rows in keys.items()},
        columns=_PooledColumns(tables, order, metrics),
    )


class _PooledColumns(Mapping[str, Column]):
    """The columns of several tables as one; not cached, since a leaderboard has many tables and ranks by few."""

    def __init__(self, tables: Sequence[ItemTable], order: Rows, metrics: Sequence[str]) -> None:
        self._tables = tables
        self._order = order
        self._metrics = metrics

    def __getitem__(self, metric: str) -> Column:
        if metric not in self._metrics:
            raise KeyError(metric)
        width = get_metric(metric).width
        return _stacked(
            [
                table.columns[metric] if metric in table.columns else _empty(len(table.items), width)
                for table in self._tables
            ]
        ).take(self._order)

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


class RunTables:
    """The tables of a run's tasks and groups, each built on first use.

    Args:
        samples: by task.
        made: tables built earlier, by task or group, if the samples are not available.
    """

    def __init__(
        self, samples: Mapping[str, Sequence[Sample]], made: Mapping[str, ItemTable] = MappingProxyType({})
    ) -> None:
        self._samples = samples
        self._made_before = made
        self._tables: dict[tuple[str, tuple[str, ...]], ItemTable] = {}

    @property
    def made(self) -> dict[str, ItemTable]:
        """The tables built from samples so far, by task or group; all others are pooled from them."""
        made = {name: one for (name, _), one in self._tables.items() if not isinstance(one.columns, _PooledColumns)}
        return {**self._made_before, **made}

    def compact(self) -> RunTables:
        """The tables built so far, compact and without the samples, which take twenty times as much memory."""
        return RunTables({}, {name: table.compact() for name, table in self.made.items()})

    @property
    def groups(self) -> list[tuple[str, tuple[str, ...]]]:
        """The groups used so far, with their members."""
        return [key for key in self._tables if key[1] != (key[0],)]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have samples."""
        return tuple(self._samples) or tuple(name for name in self._made_before if load_spec(name).kind == "task")

    def of(self, name: str, members: Sequence[str] = ()) -> ItemTable:
        """The table of a task, or of a group over its ``members``.

        A task's table also has what its groups need, so that their tables are pooled, not built from samples. This does
        not apply to benchmarks with their own ``join``, which may join samples of several tasks.
        """
        key = (name, tuple(members) or (name,))
        if key not in self._tables:
            self._tables[key] = self._table(*key)
        return self._tables[key]

    def _table(self, name: str, members: tuple[str, ...]) -> ItemTable:
        if name in self._made_before:
            return self._made_before[name]
        facts = load_spec(name).metadata
        benchmark = get_benchmark(facts.benchmark)
        if benchmark.join is sample_items and members != (name,):
            return pooled_table([self.of(member) for member in members], facts.pooled)
        breakdowns, pooled = [*facts.breakdowns], [*facts.pooled]
        if members == (name,):
            for group in groups_of(name):
                breakdowns += load_spec(group).metadata.breakdowns
                pooled += load_spec(group).metadata.pooled if benchmark.join is sample_items else ()
        samples = [sample for member in members for sample in self._samples[member]]
        table = item_table(samples, benchmark, tuple(dict.fromkeys(breakdowns)), tuple(dict.fromkeys(pooled)))
        own = {*facts.pooled, *(metric for sample in samples[:1] for metric in sample.scores)}
        return replace(table, metrics=tuple(name for name in table.metrics if name not in pooled or name in own))


def groups_of(task: str) -> list[str]:
    """The installed groups that contain ``task``."""
    return [name for name, spec in load_specs().items() if spec.kind == "group" and task in leaf_tasks(name)]


def without_value(table: Array) -> Mask:
    """Which rows of statistics ``(items, width)`` do not count: those of NaN, which have no value, and in mean-type
    metrics those over no observations, which the metric does not apply to."""
    found: Mask = np.asarray(np.isnan(table).any(axis=1))
    return found | (table[:, 1] == 0) if table.shape[1] == 2 else found

"""A column of an item table: the statistics of one metric, with what is known about those that are open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from medtasks.catalog.benchmark import Value
from medtasks.core.errors import DataError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric

Rows = npt.NDArray[np.int64]
"""Row numbers of items."""
Mask = npt.NDArray[np.bool_]
States = npt.NDArray[np.int8]
ABSENT, PRESENT, FAILED, PENDING, AWAITING = range(5)
"""The states of an item: without a value of the metric, with one, without a response, without a verdict, and without
one because no judge has been asked."""


T = TypeVar("T")


class Lazy(Mapping[str, T]):
    """A mapping whose values are made on each access: ``make`` of each of ``names``."""

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        self._names = dict.fromkeys(names)
        self._make = make

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Column:
    """One metric of n items.

    ``statistics`` ``(n, width)`` are NaN where they are open. ``ranges`` ``(n, 2, width)`` are the lowest and the
    highest statistics of open items, NaN without a range; None if no item has one. ``judge`` is the judge that was
    asked about each item, empty for none; None if none was asked at all. ``repeats`` has the statistics of every repeat
    ``(n, repeats, width)``; None unless all items have the same number, and more than one. ``parts`` are the columns in
    which items judged by parts are reduced to one group of `Benchmark.parts`.
    """

    statistics: Array
    state: States
    ranges: Array | None = None
    judge: npt.NDArray[np.str_] | None = None
    repeats: Array | None = None
    parts: Mapping[str, Column] = field(default_factory=dict)

    @cached_property
    def known(self) -> Mask:
        """Items with statistics."""
        known: Mask = np.asarray(~np.isnan(self.statistics).all(axis=1))
        return known

    @property
    def present(self) -> Mask:
        """Items with a value of the metric."""
        return np.asarray(self.state != ABSENT)

    @property
    def failed(self) -> Mask:
        """Items without a response."""
        return np.asarray(self.state == FAILED)

    @property
    def pending(self) -> Mask:
        """Items without a verdict."""
        return np.asarray(self.state >= PENDING)

    @property
    def awaiting(self) -> Mask:
        """Items about which no judge has been asked."""
        return np.asarray(self.state == AWAITING)

    @cached_property
    def applies(self) -> Mask:
        """Items that the metric applies to: a mean over no observations is excluded."""
        applies: Mask = self.present & (self.statistics[:, 1] != 0) if self.statistics.shape[1] == 2 else self.present
        return applies

    def judges_of(self, rows: Rows) -> list[str]:
        """The judges that contributed to these items, sorted."""
        return [] if self.judge is None else [str(name) for name in np.unique(self.judge[rows]) if name]

    def bounds(self, rows: Rows) -> tuple[Array, Array]:
        """Statistics of these items, with open ones at their lowest and at their highest, NaN without a range."""
        statistics, known = self.statistics[rows], self.known[rows][:, None]
        if self.ranges is None:
            return statistics, statistics
        low, high = (np.where(known, statistics, self.ranges[rows, side]) for side in (0, 1))
        return low, high

    def part(self, key: str) -> Column:
        """The column in which items judged by parts are reduced to the part ``key``."""
        return self.parts.get(key, self)

    def take(self, rows: Rows) -> Column:
        """The column restricted to these items."""
        return Column(
            self.statistics[rows],
            self.state[rows],
            ranges=None if self.ranges is None else self.ranges[rows],
            judge=None if self.judge is None else self.judge[rows],
            repeats=None if self.repeats is None else self.repeats[rows],
            parts=Lazy(self.parts, lambda key: self.parts[key].take(rows)),
        )

    @property
    def plain(self) -> Column:
        """The column without repeats and parts."""
        return replace(self, repeats=None, parts={})

    def replaced(self, rows: Rows, column: Column) -> Column:
        """The plain column with these items replaced by those of ``column``."""
        order = np.arange(len(self.state))
        order[rows] = np.arange(len(rows)) + len(order)
        return stacked([self.plain, column.plain]).take(order)


def empty_column(items: int, width: int) -> Column:
    """The column of a metric that no item has a value of."""
    return Column(_blank(items, width), np.full(items, ABSENT, dtype=np.int8))


def _blank(*shape: int) -> Array:
    return np.full(shape, np.nan)


def stacked(columns: Sequence[Column]) -> Column:
    """The columns of several tables, concatenated."""
    repeats = [one.repeats for one in columns if one.repeats is not None]
    equal = len(repeats) == len(columns) and len({one.shape[1] for one in repeats}) == 1
    ranges = judge = None
    if any(one.ranges is not None for one in columns):
        ranges = np.concatenate(
            [
                _blank(len(one.state), 2, one.statistics.shape[1]) if one.ranges is None else one.ranges
                for one in columns
            ]
        )
    if any(one.judge is not None for one in columns):
        judge = np.concatenate([np.full(len(one.state), "") if one.judge is None else one.judge for one in columns])
    keys = dict.fromkeys(chain.from_iterable(one.parts for one in columns))
    return Column(
        np.concatenate([one.statistics for one in columns]),
        np.concatenate([one.state for one in columns]),
        ranges=ranges,
        judge=judge,
        repeats=np.concatenate(repeats) if equal else None,
        parts=Lazy(keys, lambda key: stacked([one.part(key).plain for one in columns])),
    )


def column_of(metric: str, values: Sequence[Value | None]) -> Column:
    """The column of one value per item; None for an item without a value.

    Raises:
        DataError: statistics do not have the metric's width.
    """
    width, nothing = get_metric(metric).width, Value()
    if not values:
        return empty_column(0, width)
    fields = zip(*(nothing if value is None else value for value in values), strict=True)
    statistics, lows, highs, repeats, asked, parts, failed = fields
    blank = (np.nan,) * width
    ranges = None
    if any(lows):
        ends = [blank if None in pair else pair for pair in zip(lows, highs, strict=True)]
        both = chain.from_iterable((blank, blank) if pair is blank else pair for pair in ends)
        ranges = _array(metric, [*both], width).reshape(len(values), 2, width)
    state = np.full(len(values), PRESENT, dtype=np.int8)
    if None in statistics or any(failed):
        state = np.array([ABSENT if value is None else _state(value) for value in values], dtype=np.int8)
    lengths = set(map(len, repeats))
    members: dict[str, dict[int, Value]] = {}
    for row in np.flatnonzero([*map(len, parts)]).tolist():
        for key, part in parts[row].items():
            members.setdefault(key, {})[row] = part
    whole = Column(
        _array(metric, [blank if row is None else row for row in statistics], width),
        state,
        ranges=ranges,
        judge=np.array([judge or "" for judge in asked]) if any(asked) else None,
        repeats=np.array(repeats, dtype=np.float64) if len(lengths) == 1 and max(lengths) > 1 else None,
    )
    columns = {
        key: (np.array([*rows], dtype=np.int64), column_of(metric, [*rows.values()])) for key, rows in members.items()
    }
    return replace(whole, parts=Lazy(columns, lambda key: whole.replaced(*columns[key])))


def _state(value: Value) -> int:
    if value.failed:
        return FAILED
    return AWAITING if value.awaiting else PENDING if value.pending else PRESENT


def _array(metric: str, rows: Sequence[tuple[float, ...]], width: int) -> Array:
    """The rows as an array, several times as fast as by `np.array`."""
    if wrong := set(map(len, rows)) - {width}:
        raise DataError(
            f"statistics of {metric} have {min(wrong)} numbers, expected {width}; score the directory again: "
            "medtasks score DIR --out NEW_DIR."
        )
    return np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(len(rows), width)


def without_value(table: Array) -> Mask:
    """Which rows of statistics ``(items, width)`` do not count: those of NaN, which have no value, and in mean-type
    metrics those over no observations, which the metric does not apply to."""
    found: Mask = np.asarray(np.isnan(table).any(axis=1))
    return found | (table[:, 1] == 0) if table.shape[1] == 2 else found

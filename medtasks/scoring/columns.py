"""One metric of many items, as arrays: statistics, states, ranges, judges and repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from medtasks.catalog.items import Value
from medtasks.core.errors import DataError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric

AnyArray = TypeVar("AnyArray", bound="npt.NDArray[Any]")

Rows = npt.NDArray[np.int64]
"""Row numbers of items."""
Mask = npt.NDArray[np.bool_]
Judges = npt.NDArray[np.str_]
PartKey = tuple[str, str]
"""A metric, and the part to which items judged by parts (`ScoringRules.parts`) are reduced."""

_NO_VALUE = Value()


class ItemState(IntEnum):
    """Whether an item has a value of a metric, or why not. Cached tables store these numbers."""

    ABSENT = 0
    """The metric was not computed."""
    PRESENT = 1
    FAILED = 2
    """There is no response."""
    PENDING = 3
    """A judge was asked, but there is no verdict."""
    AWAITING = 4
    """No judge has been asked yet."""


@dataclass(frozen=True)
class MetricColumn:
    """One metric of n items.

    ``statistics`` ``(n, width)`` are NaN where they are open. ``state`` has the items'
    :class:`ItemState`. ``ranges`` ``(n, 2, width)`` are the lowest and the highest statistics of
    open items, NaN without a range; None if no item has one. ``judge`` is the judge that was asked
    about each item, empty for none; None if none was asked at all. ``repeats`` has the statistics
    of every repeat ``(n, repeats, width)``; None unless all items have the same number, and more
    than one.
    """

    statistics: Array
    state: npt.NDArray[np.int8]
    ranges: Array | None = None
    judge: Judges | None = None
    repeats: Array | None = None

    @cached_property
    def known(self) -> Mask:
        """Items with a value."""
        return np.asarray(~np.isnan(self.statistics).all(axis=1))

    @property
    def present(self) -> Mask:
        """Items for which the metric was computed, or will be once they are judged."""
        return np.asarray(self.state != ItemState.ABSENT)

    @cached_property
    def applies(self) -> Mask:
        """Items that the metric applies to: a mean over no observations is excluded."""
        if self.statistics.shape[1] != 2:
            return self.present
        observations = self.statistics[:, 1]
        return np.asarray(self.present & (observations != 0))

    def judges_of(self, rows: Rows) -> list[str]:
        """The judges that contributed to these items, sorted."""
        if self.judge is None:
            return []
        return [str(name) for name in np.unique(self.judge[rows]) if name]

    def bounds(self, rows: Rows) -> tuple[Array, Array]:
        """Statistics of these items, with open ones at their lowest and at their highest, NaN
        without a range.
        """
        statistics = self.statistics[rows]
        if self.ranges is None:
            return statistics, statistics
        is_known = self.known[rows][:, None]
        lowest = np.where(is_known, statistics, self.ranges[rows, 0])
        highest = np.where(is_known, statistics, self.ranges[rows, 1])
        return lowest, highest

    def take(self, rows: Rows) -> MetricColumn:
        """The column of these rows."""
        return MetricColumn(
            self.statistics[rows],
            self.state[rows],
            ranges=_taken(self.ranges, rows),
            judge=_taken(self.judge, rows),
            repeats=_taken(self.repeats, rows),
        )


def _taken(array: AnyArray | None, rows: Rows) -> AnyArray | None:
    return None if array is None else array[rows]  # type: ignore[return-value]


def absent_column(metric: str, items: int) -> MetricColumn:
    """The column of a metric that was computed for none of the items."""
    statistics = np.full((items, get_metric(metric).width), np.nan)
    return MetricColumn(statistics, np.full(items, ItemState.ABSENT, dtype=np.int8))


# --- columns from values ---


def column_of(metric: str, values: Sequence[Value | None]) -> MetricColumn:
    """The column of one value per item; None for an item without a value."""
    filled = [_NO_VALUE if value is None else value for value in values]
    blank = (np.nan,) * get_metric(metric).width
    statistics = [blank if value.statistics is None else value.statistics for value in filled]
    return MetricColumn(
        _array(metric, statistics),
        _states(values),
        ranges=_ranges(metric, filled),
        judge=_judges(filled),
        repeats=_repeats(filled),
    )


def _array(metric: str, rows: Sequence[tuple[float, ...]]) -> Array:
    """The rows as an array, several times as fast as by `np.array`."""
    width = get_metric(metric).width
    wrong = {len(row) for row in rows} - {width}
    if wrong:
        raise DataError(
            f"statistics of {metric} have {min(wrong)} numbers, expected {width}; "
            "score the directory again: medtasks score DIR --out NEW_DIR."
        )
    numbers = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width)
    return numbers.reshape(len(rows), width)


def _states(values: Sequence[Value | None]) -> npt.NDArray[np.int8]:
    """The :class:`ItemState` of each value."""
    states = np.full(len(values), ItemState.PRESENT, dtype=np.int8)
    for row, value in enumerate(values):
        if value is None:
            states[row] = ItemState.ABSENT
        elif value.failed:
            states[row] = ItemState.FAILED
        elif value.pending:
            states[row] = ItemState.AWAITING if value.judge is None else ItemState.PENDING
    return states


def _ranges(metric: str, values: Sequence[Value]) -> Array | None:
    """The lowest and the highest statistics ``(n, 2, width)``, NaN for values without a range; None
    if no value has one.
    """
    if not any(value.low for value in values):
        return None
    width = get_metric(metric).width
    blank = (np.nan,) * width
    ends: list[tuple[float, ...]] = []
    for value in values:
        if value.low is None or value.high is None:
            ends += (blank, blank)
        else:
            ends += (value.low, value.high)
    return _array(metric, ends).reshape(len(values), 2, width)


def _judges(values: Sequence[Value]) -> Judges | None:
    """The judge that was asked about each value; None if none was asked at all."""
    names = [value.judge or "" for value in values]
    return np.array(names) if any(names) else None


def _repeats(values: Sequence[Value]) -> Array | None:
    """The statistics of every repeat; None unless all items have the same number above one."""
    numbers = {len(value.repeats) for value in values}
    if len(numbers) != 1 or max(numbers) < 2:
        return None
    return np.array([value.repeats for value in values], dtype=np.float64)


# --- columns of several tables ---


def stacked(columns: Sequence[MetricColumn]) -> MetricColumn:
    """The columns of several tables, concatenated."""
    return MetricColumn(
        np.concatenate([column.statistics for column in columns]),
        np.concatenate([column.state for column in columns]),
        ranges=_stacked_ranges(columns),
        judge=_stacked_judges(columns),
        repeats=_stacked_repeats(columns),
    )


def _stacked_ranges(columns: Sequence[MetricColumn]) -> Array | None:
    """The ranges of all columns, NaN for a column without; None if no column has any."""
    if all(column.ranges is None for column in columns):
        return None
    ranges = []
    for column in columns:
        if column.ranges is None:
            items, width = column.statistics.shape
            ranges.append(np.full((items, 2, width), np.nan))
        else:
            ranges.append(column.ranges)
    return np.concatenate(ranges)


def _stacked_judges(columns: Sequence[MetricColumn]) -> Judges | None:
    """The judges of all columns, empty for a column without; None if no column has any."""
    if all(column.judge is None for column in columns):
        return None
    judges = []
    for column in columns:
        if column.judge is None:
            judges.append(np.full(len(column.state), ""))
        else:
            judges.append(column.judge)
    return np.concatenate(judges)


def _stacked_repeats(columns: Sequence[MetricColumn]) -> Array | None:
    """The repeats of all columns; None unless all have the same number."""
    repeats = []
    for column in columns:
        if column.repeats is None:
            return None
        repeats.append(column.repeats)
    numbers = {array.shape[1] for array in repeats}
    return np.concatenate(repeats) if len(numbers) == 1 else None


# --- items judged by parts ---


class Reduced(NamedTuple):
    """The rows of the items that have a part, ascending, and their column reduced to it."""

    rows: Rows
    column: MetricColumn


def reduced_columns(values: Mapping[str, Sequence[Value | None]]) -> dict[PartKey, Reduced]:
    """By metric and part, the items that are judged by parts and have this one, reduced to it."""
    values_by_key: dict[PartKey, dict[int, Value]] = {}
    for metric, values_of_metric in values.items():
        for row, value in enumerate(values_of_metric):
            if value is None:
                continue
            for part, part_value in value.parts.items():
                values_by_key.setdefault((metric, part), {})[row] = part_value
    reduced = {}
    for key, value_by_row in values_by_key.items():
        metric, _ = key
        column = column_of(metric, [*value_by_row.values()])
        reduced[key] = Reduced(np.array([*value_by_row]), column)
    return reduced


def reduced_to(whole: MetricColumn, reduced: Reduced | None, rows: Rows) -> MetricColumn:
    """The column of ``rows``, in their order, in which items that have a part are reduced to it.

    ``rows`` number the items of ``whole``; the other items keep their values from there.
    ``reduced.rows`` number the same items, and must be ascending and not empty.
    """
    unreduced = whole.take(rows)
    if reduced is None:
        return unreduced
    # where each row is in `reduced.rows`, or would have to be inserted, at the latest the last
    positions = np.searchsorted(reduced.rows, rows).clip(max=len(reduced.rows) - 1)
    has_part = reduced.rows[positions] == rows
    both = stacked([unreduced, reduced.column])
    places_unreduced = np.arange(len(rows))
    places_reduced = len(rows) + positions
    return both.take(np.where(has_part, places_reduced, places_unreduced))


def without_value(statistics: Array) -> Mask:
    """Which items of ``(items, width)`` do not count: those with NaN, and means over no
    observations.
    """
    is_open = np.isnan(statistics).any(axis=1)
    if statistics.shape[1] != 2:
        return np.asarray(is_open)
    return np.asarray(is_open | (statistics[:, 1] == 0))

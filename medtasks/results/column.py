"""A column of an item table: the statistics of one metric, with what is known about those that are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from medtasks.benchmarks.base import Value
from medtasks.errors import DataError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric

Rows = npt.NDArray[np.int64]
"""Row numbers of items."""
Mask = npt.NDArray[np.bool_]
_NOBODY = -1


@dataclass(frozen=True)
class Column:
    """One metric of n items.

    ``statistics``, ``low`` and ``high`` are ``(n, width)``: the known statistics, or the range that they will be in;
    rows without are NaN. Statistics that are exact in single precision, as counts are, are stored so. ``present`` marks
    the items with a value of the metric, ``failed`` those without a response, ``pending`` those without a verdict,
    ``awaiting`` those for which no judge has been asked. ``judge`` is the index in ``judges`` of the judge that was
    asked, negative if none was. ``repeats`` has the statistics of every repeat ``(n, repeats, width)``; None unless all
    items have the same number, and more than one. ``parts`` are the items' values within each group of
    `Benchmark.parts`, of those items whose part differs from the whole.
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
    parts: Mapping[str, Part] = field(default_factory=dict)

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

    def judges_of(self, rows: Rows) -> list[str]:
        """The judges that contributed to these items, sorted."""
        codes = np.unique(self.judge[rows]).tolist() if self.judges else []
        return [self.judges[code] for code in codes if code >= 0]

    def bounds(self, rows: Rows) -> tuple[Array, Array]:
        """Statistics of these items, with open ones at ``low`` and at ``high``, which are NaN without a range."""
        known = self.known[rows][:, None]
        low, high = (np.where(known, self.statistics[rows], side[rows]) for side in (self.low, self.high))
        return low, high

    def part(self, key: str) -> Column:
        """The column in which items judged by parts are reduced to the part ``key``."""
        return self.parts[key].within(self) if key in self.parts else self

    def take(self, rows: Rows) -> Column:
        """The column restricted to these items."""
        return replace(
            self,
            **{name: _rows(getattr(self, name), rows) for name in _ARRAYS},
            repeats=None if self.repeats is None else self.repeats[rows],
            parts={key: part.take(rows, len(self.present)) for key, part in self.parts.items()},
        )


_ARRAYS = ("statistics", "low", "high", "present", "failed", "pending", "awaiting", "judge")


@dataclass(frozen=True)
class Part:
    """The column of some of the items, in the order of ``rows``, without repeats: most groups have few items."""

    rows: Rows
    column: Column

    def within(self, whole: Column) -> Column:
        """``whole`` with these items replaced, without repeats and parts."""
        judges = tuple(sorted({*whole.judges, *self.column.judges}))
        arrays = {name: self._replaced(getattr(whole, name), getattr(self.column, name)) for name in _ARRAYS[:-1]}
        judge = self._replaced(_renumbered(whole, judges), _renumbered(self.column, judges))
        return Column(**arrays, judge=judge, judges=judges)

    def spread(self, items: int) -> Column:
        """The column of all ``items``; those that are not in ``rows`` have no value."""
        parts = {key: Part(self.rows[part.rows], part.column) for key, part in self.column.parts.items()}
        return replace(self.within(empty_column(items, self.column.statistics.shape[1])), parts=parts)

    def take(self, rows: Rows, items: int) -> Part:
        """The part of the column of ``items`` that is restricted to ``rows``."""
        place = np.full(items, _NOBODY)
        place[self.rows] = np.arange(len(self.rows))
        found = place[rows]
        return Part(np.flatnonzero(found >= 0), self.column.take(found[found >= 0]))

    def _replaced(self, array: npt.NDArray[Any], ours: npt.NDArray[Any]) -> Any:
        if _are_constant([array, ours]):
            return array
        found = array.astype(np.result_type(array, ours))  # a copy, as precise as the part
        found[self.rows] = ours
        return found


def empty_column(items: int, width: int) -> Column:
    """The column of a metric that no item has a value of; its arrays are constant and take no memory."""
    no_value, no = blank(items, width), np.broadcast_to(False, items)
    return Column(no_value, no_value, no_value, no, no, no, no, np.broadcast_to(np.int64(_NOBODY), items))


def blank(items: int, width: int) -> Array:
    """An array of NaN that takes no memory."""
    return np.broadcast_to(np.nan, (items, width))


def _are_constant(arrays: Sequence[npt.NDArray[Any]]) -> bool:
    """Whether the arrays repeat one number, or NaN, without taking memory."""
    if not all(len(array) and not any(array.strides) for array in arrays):
        return False
    first, *others = (array.item(0) for array in arrays)
    return all(number == first or (number != number and first != first) for number in others)  # NaN differs from itself


def _repeated(array: npt.NDArray[Any], items: int) -> Any:
    return np.broadcast_to(array[:1], (items, *array.shape[1:]))


def _rows(array: npt.NDArray[Any], rows: Rows) -> Any:
    return _repeated(array, len(rows)) if _are_constant([array]) else array[rows]


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return _repeated(arrays[0], sum(map(len, arrays))) if _are_constant(arrays) else np.concatenate(arrays)


def statistics_alone(column: Column, rest: Column) -> Column:
    """The column with its statistics, and those of its parts that differ; all else is that of ``rest``."""
    parts = {}
    for key, part in column.parts.items():
        whole, own = column.statistics[part.rows], part.column.statistics
        rows = np.flatnonzero(((whole != own) & ~(np.isnan(whole) & np.isnan(own))).any(axis=1))
        if len(rows):
            first = {name: getattr(rest, name)[: len(rows)] for name in _ARRAYS}  # views, which take no memory
            kept = statistics_alone(part.column.take(rows), replace(rest, **first))
            parts[key] = Part(part.rows[rows].astype(np.int32), kept)
    no_value = blank(*column.statistics.shape)
    statistics = _single(column.statistics)
    return replace(rest, statistics=statistics, low=no_value, high=no_value, present=column.present, parts=parts)


def _single(table: Array) -> Array:
    """The table in single precision if that changes no number, as in counts."""
    single: Any = table.astype(np.float32)
    return single if np.array_equal(single, table, equal_nan=True) else table


def stacked(columns: Sequence[Column]) -> Column:
    """The columns of several tables, concatenated."""
    judges = tuple(sorted({judge for column in columns for judge in column.judges}))
    arrays = {name: _joined([getattr(column, name) for column in columns]) for name in _ARRAYS[:-1]}
    repeats = [column.repeats for column in columns]
    equal = all(one is not None for one in repeats) and len({one.shape[1] for one in repeats if one is not None}) == 1
    starts = np.cumsum([0, *(len(column.present) for column in columns)]).tolist()
    parts: dict[str, list[Part]] = {}
    for column, start in zip(columns, starts, strict=False):
        for key, part in column.parts.items():
            parts.setdefault(key, []).append(Part(part.rows + start, part.column))
    return Column(
        **arrays,
        judge=_joined([_renumbered(column, judges) for column in columns]),
        judges=judges,
        repeats=np.concatenate([one for one in repeats if one is not None]) if equal else None,
        parts={
            key: Part(np.concatenate([one.rows for one in found]), stacked([one.column for one in found]))
            for key, found in parts.items()
        },
    )


def _renumbered(column: Column, judges: Sequence[str]) -> Rows:
    if not column.judges:
        return column.judge
    codes = np.array([judges.index(judge) for judge in column.judges] + [_NOBODY], dtype=np.int64)
    return codes[column.judge]  # -1, no judge, selects the last code


def column_of(metric: str, values: Sequence[Value | None]) -> Column:
    """The column of one value per item; None for an item without a value.

    Raises:
        DataError: statistics do not have the metric's width.
    """
    given = [value for value in values if value is not None]
    column = _full_column(metric, given)
    if len(given) == len(values):
        return column
    return Part(np.flatnonzero([value is not None for value in values]), column).spread(len(values))


def _full_column(metric: str, values: Sequence[Value]) -> Column:
    """The column of items that all have a value."""
    width = get_metric(metric).width
    blank = (np.nan,) * width
    found = replace(empty_column(len(values), width), present=np.broadcast_to(True, len(values)))
    statistics, lows, highs, repeats, asked, parts, failed = zip(*values, strict=True) if values else ((),) * 7
    judges = tuple(sorted(judge for judge in set(asked) if judge is not None))
    members: dict[str, dict[int, Value]] = {}
    for row in np.flatnonzero([*map(len, parts)]).tolist():
        for key, part in parts[row].items():
            members.setdefault(key, {})[row] = part
    if any(failed) or None in statistics:
        found = replace(
            found,
            failed=np.array(failed),
            pending=np.array([value.pending for value in values]),
            awaiting=np.array([value.awaiting for value in values]),
        )
    if judges:
        codes: dict[str | None, int] = {None: _NOBODY, **{judge: code for code, judge in enumerate(judges)}}
        found = replace(found, judge=np.array([codes[judge] for judge in asked], dtype=np.int64))
    known = [blank if row is None else row for row in statistics]
    ends = [None if None in pair else pair for pair in zip(lows, highs, strict=True)] if any(lows) else []
    lengths = set(map(len, repeats))

    def array(rows: list[tuple[float, ...]]) -> Array:  # several times as fast as np.array
        _check_width(metric, set(map(len, rows)), width)
        return np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(len(rows), width)

    def limit(side: int) -> Array:
        return array([blank if one is None else one[side] for one in ends]) if any(ends) else found.low

    return replace(
        found,
        statistics=_single(array(known)),
        low=limit(0),
        high=limit(1),
        judges=judges,
        repeats=np.array(repeats, dtype=np.float64) if len(lengths) == 1 and max(lengths) > 1 else None,
        parts={
            key: Part(np.array(list(rows)), replace(_full_column(metric, list(rows.values())), repeats=None))
            for key, rows in members.items()
        },
    )


def _check_width(metric: str, found: set[int], width: int) -> None:
    if wrong := found - {width}:
        raise DataError(
            f"statistics of {metric} have {min(wrong)} numbers, expected {width}; score the directory again: "
            "medtasks score DIR --out NEW_DIR."
        )


def without_value(table: Array) -> Mask:
    """Which rows of statistics ``(items, width)`` do not count: those of NaN, which have no value, and in mean-type
    metrics those over no observations, which the metric does not apply to."""
    found: Mask = np.asarray(np.isnan(table).any(axis=1))
    return found | (table[:, 1] == 0) if table.shape[1] == 2 else found

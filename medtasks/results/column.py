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
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array

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


def empty_column(items: int, width: int) -> Column:
    """The column of a metric that no item has a value of."""

    def mask() -> Mask:
        return np.zeros(items, dtype=bool)

    no_value = blank(items, width)
    judge = np.full(items, _NOBODY, dtype=np.int64)
    return Column(no_value, no_value, no_value, mask(), mask(), mask(), mask(), judge)


def blank(items: int, width: int) -> Array:
    """An array of NaN that takes no memory."""
    return np.broadcast_to(np.nan, (items, width))


def _is_blank(array: npt.NDArray[Any]) -> bool:
    return array.ndim == 2 and not any(array.strides)


def _rows(array: npt.NDArray[Any], rows: Rows) -> Any:
    return blank(len(rows), array.shape[1]) if _is_blank(array) else array[rows]


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    if all(map(_is_blank, arrays)):
        return blank(sum(map(len, arrays)), arrays[0].shape[1])
    return np.concatenate(arrays)


def statistics_alone(column: Column, rest: Column) -> Column:
    no_value = blank(*column.statistics.shape)
    return replace(rest, statistics=_single(column.statistics), low=no_value, high=no_value, present=column.present)


def _single(table: Array) -> Array:
    """The table in single precision if that changes no number, as in counts."""
    single: Any = table.astype(np.float32)
    return single if np.array_equal(single, table, equal_nan=True) else table


def _merged(columns: Sequence[Column], masks: Sequence[Mask]) -> Column:
    """The rows that each column's mask selects, without repeats and parts."""
    empty = empty_column(len(masks[0]), columns[0].statistics.shape[1])
    found = replace(empty, statistics=empty.statistics.copy(), low=empty.low.copy(), high=empty.high.copy())
    judges = tuple(sorted({judge for column in columns for judge in column.judges}))
    for column, mask in zip(columns, masks, strict=True):
        for name in _ARRAYS[:-1]:
            getattr(found, name)[mask] = getattr(column, name)[mask]
        found.judge[mask] = _renumbered(column, judges)[mask]
    return replace(found, judges=judges)


def stacked(columns: Sequence[Column]) -> Column:
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
            key: stacked([column.parts.get(key) or empty_column(len(column.present), width) for column in columns])
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
    found = empty_column(len(values), width)
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


def without_value(table: Array) -> Mask:
    """Which rows of statistics ``(items, width)`` do not count: those of NaN, which have no value, and in mean-type
    metrics those over no observations, which the metric does not apply to."""
    found: Mask = np.asarray(np.isnan(table).any(axis=1))
    return found | (table[:, 1] == 0) if table.shape[1] == 2 else found

"""Items as columns: what every score, interval, breakdown and diagnosis of a run is computed from.

A table is made once per task or group. Scoring a part of it is choosing rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from medtasks.benchmarks.base import Benchmark, Joined, SampleView, Value
from medtasks.errors import MedtasksError
from medtasks.metrics import Metric, get_metric
from medtasks.metrics.base import Array

__all__ = ["Column", "ItemTable", "Rows"]

Rows = npt.NDArray[np.int64]
"""Numbers of items, in their order."""
_Mask = npt.NDArray[np.bool_]
_NOBODY = -1


@dataclass(frozen=True)
class Column:
    """One metric of n items.

    ``statistics``, ``low`` and ``high`` are ``(n, width)``, a row of NaN where there is none: known statistics, or the
    ends between which they will lie. ``applies`` marks the items that the metric is about; the other masks mark those
    of them to which the back-end gave no response, that lack a verdict, and for which no judge was asked yet. ``judge``
    is the number of the judge in ``judges`` that was asked, below 0 where none was. ``repeats`` has each item's
    statistics of every repeat ``(n, repeats, width)``, None unless all items have as many, and more than one.
    """

    metric: Metric
    statistics: Array
    low: Array
    high: Array
    applies: _Mask
    failed: _Mask
    pending: _Mask
    awaiting: _Mask
    judge: npt.NDArray[np.int64]
    judges: tuple[str, ...]
    repeats: Array | None

    @classmethod
    def of(cls, metric: Metric, values: Sequence[Value | None]) -> Column:
        """The column of one value per item; None where an item has none."""
        present = [value is not None for value in values]
        filled = [value or Value() for value in values]
        statistics = _rows(metric, [value.statistics for value in filled])
        empty = statistics[:, 1] == 0 if metric.width == 2 else np.zeros(len(values), dtype=bool)
        judges = tuple(sorted({value.judge for value in filled if value.judge is not None}))
        number = {judge: code for code, judge in enumerate(judges)}
        return cls(
            metric=metric,
            statistics=statistics,
            low=_rows(metric, [value.low for value in filled]),
            high=_rows(metric, [value.high for value in filled]),
            applies=np.array(present, dtype=bool) & ~empty,  # a mean over no observation says that it does not apply
            failed=np.array([value.failed for value in filled], dtype=bool),
            pending=np.array([value.pending for value in filled], dtype=bool),
            awaiting=np.array([value.awaiting for value in filled], dtype=bool),
            judge=np.array([number.get(value.judge or "", _NOBODY) for value in filled], dtype=np.int64),
            judges=judges,
            repeats=_repeats([value.repeats for value in filled]),
        )

    @cached_property
    def known(self) -> _Mask:
        """Items with statistics."""
        known: _Mask = np.asarray(~np.isnan(self.statistics).all(axis=1))
        return known

    def judges_of(self, rows: Rows) -> list[str]:
        """The judges that had a part in these items, sorted."""
        return [self.judges[code] for code in np.unique(self.judge[rows]).tolist() if code >= 0]

    def end(self, rows: Rows, side: str) -> Array | None:
        """Statistics of these items with every open one at its ``low`` or ``high``; None where one has neither."""
        found = np.where(self.known[rows][:, None], self.statistics[rows], getattr(self, side)[rows])
        return None if np.isnan(found).any() else found


class ItemTable:
    """The items of a task or group, metric by metric.

    ``clusters`` numbers each item's cluster, in the order of the clusters' names. ``incomplete`` are the streaming
    items of which rounds were not asked; they are in no score.
    """

    def __init__(self, joined: Joined, names: Iterable[str]) -> None:
        self.items = joined.items
        self.incomplete = joined.incomplete
        order = {name: code for code, name in enumerate(sorted({item.cluster for item in joined.items}))}
        self.clusters = np.array([order[item.cluster] for item in joined.items], dtype=np.int64)
        self.columns: Mapping[str, Column] = {
            name: Column.of(get_metric(name), [item.values.get(name) for item in joined.items]) for name in names
        }
        self.rows: Rows = np.arange(len(joined.items))

    def groups(self, benchmark: Benchmark, breakdown: str) -> dict[str, tuple[Rows, Mapping[str, Column]]]:
        """The rows of each group of a breakdown, and the columns that count there, by sorted key.

        An item may be in several groups, or in none. In the groups of ``Benchmark.parts`` an item that is judged by
        parts counts with that part alone.

        Raises:
            MedtasksError: the benchmark has no such breakdown.
        """
        if breakdown not in benchmark.breakdowns:
            raise MedtasksError(
                f"{benchmark.name}: breakdown {breakdown!r} is unknown; choose from {', '.join(benchmark.breakdowns)}."
            )
        keys = benchmark.breakdowns[breakdown]
        members: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            for key in keys(item.view):
                members.setdefault(key, []).append(row)
        for views in self.incomplete.values():
            for key in keys(views[0]):
                members.setdefault(key, [])
        rows = {key: np.array(members[key], dtype=np.int64) for key in sorted(members)}
        if breakdown != benchmark.parts:
            return {key: (chosen, self.columns) for key, chosen in rows.items()}
        return {key: (chosen, {**self.columns, **self._parts(key, chosen)}) for key, chosen in rows.items()}

    def incomplete_in(self, benchmark: Benchmark, breakdown: str, key: str) -> list[tuple[SampleView, ...]]:
        """The incomplete items of one group."""
        keys = benchmark.breakdowns[breakdown]
        return [views for views in self.incomplete.values() if key in keys(views[0])]

    def _parts(self, key: str, rows: Rows) -> dict[str, Column]:
        """Columns of the metrics that are judged by parts, cut down to one part of the items in ``rows``."""
        found = {}
        for name, column in self.columns.items():
            values: list[Value | None] = [None] * len(self.items)
            cut = False
            for row in rows.tolist():
                value = self.items[row].values.get(name)
                part = None if value is None else value.parts.get(key)
                cut |= part is not None
                values[row] = value if part is None else part
            if cut:
                found[name] = Column.of(column.metric, values)
        return found


def _rows(metric: Metric, given: Sequence[tuple[float, ...] | None]) -> Array:
    blank = (np.nan,) * metric.width
    found = np.array([blank if row is None else row for row in given], dtype=np.float64)
    return found.reshape(len(given), metric.width)


def _repeats(given: Sequence[tuple[tuple[float, ...], ...]]) -> Array | None:
    lengths = {len(repeats) for repeats in given}
    return np.array(given, dtype=np.float64) if len(lengths) == 1 and max(lengths) > 1 else None

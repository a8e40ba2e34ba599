"""The table of a group, put together from the tables of its tasks without their samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from medtasks.scoring.columns import (
    Mask,
    MetricColumn,
    PartKey,
    Reduced,
    Rows,
    absent_column,
    stacked,
)
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.table_memory import LazyMapping, shared_tuple

T = TypeVar("T")


def pooled_table(
    tables: Sequence[ItemTable], breakdowns: Sequence[str] = (), pooled: Sequence[str] = ()
) -> ItemTable:
    """The table of a group, from those of its tasks, with the ``pooled`` metrics that their columns
    have; columns are put together on access, because a leaderboard ranks by few of them.
    """
    pool = _Pool(sorted(tables, key=_first_sample))
    metrics: dict[str, None] = {}
    part_keys: dict[PartKey, None] = {}
    for table in pool.tables:
        metrics |= dict.fromkeys(table.metrics)
        part_keys |= dict.fromkeys(table.reduced)
    metrics |= dict.fromkeys(pooled)
    return ItemTable(
        pool.tables[0].benchmark,
        metrics=tuple(metrics),
        breakdowns=tuple(breakdowns),
        items=pool.rows(lambda table: table.items),
        tasks=pool.rows(lambda table: table.tasks),
        clusters=pool.rows(lambda table: table.clusters),
        samples=pool.rows(lambda table: table.samples),
        statuses=pool.rows(lambda table: table.statuses),
        target=pool.rows(lambda table: table.target),
        chosen=pool.rows(lambda table: table.chosen),
        options=pool.rows(lambda table: table.options),
        complete=pool.complete[pool.order],
        groups={name: pool.group_keys(name) for name in pool.common_breakdowns()},
        columns=LazyMapping(metrics, pool.column),
        reduced=LazyMapping(part_keys, pool.reduced),
    )


def _first_sample(table: ItemTable) -> tuple[str, str]:
    """The first sample's id and task."""
    return table.samples[0][0], table.tasks[0]


@dataclass(frozen=True)
class _Pool:
    """The tables of a group's tasks, whose concatenated rows are sorted into one table."""

    tables: Sequence[ItemTable]

    @cached_property
    def complete(self) -> Mask:
        """Which of the concatenated items are complete."""
        return np.concatenate([table.complete for table in self.tables])

    @cached_property
    def order(self) -> Rows:
        """The concatenated rows in the pooled table's order: by item and task, incomplete last."""
        items: list[str] = []
        tasks: list[str] = []
        for table in self.tables:
            items += table.items
            tasks += table.tasks
        is_complete = self.complete.tolist()
        rows = sorted(
            range(len(items)), key=lambda row: (not is_complete[row], items[row], tasks[row])
        )
        return np.array(rows)

    @cached_property
    def places(self) -> list[Rows]:
        """The pooled rows of each table's items."""
        ends = np.cumsum([len(table.items) for table in self.tables])
        return np.split(np.argsort(self.order), ends[:-1])

    def rows(self, values_of: Callable[[ItemTable], Sequence[T]]) -> tuple[T, ...]:
        """The tables' values of all items, in order; empty if the tables have none."""
        values: list[T] = []
        for table in self.tables:
            values += values_of(table)
        if not values:
            return ()
        return shared_tuple(tuple(values[row] for row in self.order.tolist()))

    def group_keys(self, breakdown: str) -> tuple[tuple[str, ...], ...]:
        """The keys of each item's groups."""
        return self.rows(lambda table: table.groups[breakdown])

    def common_breakdowns(self) -> list[str]:
        """The breakdowns that all tables have."""
        common = []
        for name in self.tables[0].groups:
            if all(name in table.groups for table in self.tables):
                common.append(name)
        return common

    def column(self, metric: str) -> MetricColumn:
        """The metric's column of all items; absent for tables without the metric."""
        columns = []
        for table in self.tables:
            if metric in table.columns:
                columns.append(table.columns[metric])
            else:
                columns.append(absent_column(metric, len(table.items)))
        return stacked(columns).take(self.order)

    def reduced(self, key: PartKey) -> Reduced:
        """The items with the part in any table."""
        rows = []
        columns = []
        for place, table in zip(self.places, self.tables, strict=True):
            if key in table.reduced:
                reduced = table.reduced[key]
                rows.append(place[reduced.rows])
                columns.append(reduced.column)
        pooled_rows = np.concatenate(rows)
        ascending = np.argsort(pooled_rows)
        return Reduced(pooled_rows[ascending], stacked(columns).take(ascending))

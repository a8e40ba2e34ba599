"""The plots of a board's layout, as far as there are data for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from medtasks.catalog.board_layout import Column, Plot

from ..rank.comparability import ComparabilityGroups
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn, BoardTable
from ..verify.scored_run import ScoredRun
from .columns import board_columns, held_chance

Columns = tuple[BoardColumn, ...]


def board_plot(
    plot: Plot,
    data_tasks: Collection[str] | None,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    tables: list[BoardTable],
    comparable: Callable[[str, str, Columns], BoardTable],
) -> BoardPlot | None:
    """The plot, or None if there are no data for it.

    Args:
        plot: the plot of the layout.
        data_tasks: for a plot of other data than scores, the tasks that have such data.
        runs: the runs of the board.
        groups: their comparability groups.
        tables: the benchmark's tables. If none has the plot's columns, one is added.
        comparable: makes a table of comparable scores of its name, title and columns.
    """
    columns = board_columns(plot.columns, runs, groups)
    against = board_columns(plot.against, runs, groups)
    if data_tasks is None:
        columns, against = _valued_columns(plot, columns, against, comparable)
    else:
        columns = tuple(column for column in columns if column.task in data_tasks)
    if not columns:
        return None
    every_column = (*columns, *against)
    table = _table_with(every_column, tables)
    if table is None:
        table = comparable(_unused_name(plot.name, tables), plot.title, every_column)
        tables.append(table)
    chance = None
    if plot.chance:
        whole_task = Column(columns[0].task, columns[0].metric, label="")
        chance = held_chance(runs, whole_task)
    return BoardPlot(
        name=plot.name,
        title=plot.title,
        kind=plot.kind,
        table=table.name,
        columns=tuple(column.key for column in columns),
        against=tuple(column.key for column in against),
        ranks=plot.ranks,
        chance=chance,
        note=plot.note,
    )


def _valued_columns(
    plot: Plot,
    columns: Columns,
    against: Columns,
    comparable: Callable[[str, str, Columns], BoardTable],
) -> tuple[Columns, Columns]:
    """The columns with a value in some row, of a paired plot those with values on both sides."""
    counts: Counter[str] = Counter()
    for row in comparable(plot.name, plot.title, (*columns, *against)).rows:
        for key, cell in row.cells.items():
            if cell.value is not None:
                counts[key] += 1
    # a rank is one among several
    least = 2 if plot.ranks else 1
    if not against:
        return tuple(column for column in columns if counts[column.key] >= least), ()
    kept, kept_against = [], []
    for column, counterpart in zip(columns, against, strict=True):
        if counts[column.key] >= least and counts[counterpart.key] >= least:
            kept.append(column)
            kept_against.append(counterpart)
    return tuple(kept), tuple(kept_against)


def _table_with(columns: Columns, tables: Sequence[BoardTable]) -> BoardTable | None:
    """The first table that has all of the columns; None without one."""
    keys = {column.key for column in columns}
    for table in tables:
        if keys <= {column.key for column in table.columns}:
            return table
    return None


def _unused_name(name: str, tables: Sequence[BoardTable]) -> str:
    """``name``, or ``name-numbers`` if a table has that name."""
    taken = {table.name for table in tables}
    while name in taken:
        name = f"{name}-numbers"
    return name

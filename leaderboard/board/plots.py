"""The plots of a board's layout, as far as there are data for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from medtasks.catalog.board_layout import Column, Plot

from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn, BoardTable
from .columns import held_chance
from .table_source import TableSource


@dataclass(frozen=True)
class FilledPlot:
    """A plot with data; ``own_table`` has its numbers if no other table has all of its columns."""

    plot: BoardPlot
    own_table: BoardTable | None


@dataclass(frozen=True)
class _ColumnsOfPlot:
    """The columns of a plot; in a paired plot, each is plotted against its counterpart."""

    columns: Sequence[BoardColumn]
    counterparts: Sequence[BoardColumn] = ()

    @property
    def every_column(self) -> tuple[BoardColumn, ...]:
        return (*self.columns, *self.counterparts)


def board_plot(
    layout_plot: Plot,
    data_tasks: Collection[str] | None,
    source: TableSource,
    tables: Sequence[BoardTable],
) -> FilledPlot | None:
    """A plot of a layout, filled; None if there are no data for it.

    Args:
        layout_plot: the plot of the layout.
        data_tasks: for a plot of other data than scores, the tasks that have such data.
        source: what tables are made from.
        tables: the tables of the benchmark, one of which may have the plot's columns.
    """
    plotted = _ColumnsOfPlot(
        source.columns(layout_plot.columns), source.columns(layout_plot.against)
    )
    if data_tasks is None:
        plotted = _with_values(plotted, layout_plot, source)
    else:
        plotted = _of_tasks(plotted, data_tasks)
    if not plotted.columns:
        return None
    own_table = None
    table = _table_with(plotted.every_column, tables)
    if table is None:
        name = _unused_name(layout_plot.name, tables)
        own_table = table = source.table(name, layout_plot.title, plotted.every_column)
    plot = BoardPlot(
        name=layout_plot.name,
        title=layout_plot.title,
        kind=layout_plot.kind,
        table=table.name,
        columns=tuple(column.key for column in plotted.columns),
        against=tuple(column.key for column in plotted.counterparts),
        ranks=layout_plot.ranks,
        chance=_chance_line(layout_plot, plotted.columns[0], source),
        note=layout_plot.note,
    )
    return FilledPlot(plot, own_table)


def _chance_line(layout_plot: Plot, column: BoardColumn, source: TableSource) -> float | None:
    """The score of guessing in the whole task of a column, if the plot shows it."""
    if not layout_plot.chance:
        return None
    whole_task = Column(column.task, column.metric, label="")
    return held_chance(source.runs, whole_task)


def _of_tasks(plotted: _ColumnsOfPlot, tasks: Collection[str]) -> _ColumnsOfPlot:
    """The plotted columns of these tasks, with all counterparts."""
    columns = [column for column in plotted.columns if column.task in tasks]
    return _ColumnsOfPlot(columns, plotted.counterparts)


def _with_values(plotted: _ColumnsOfPlot, layout_plot: Plot, source: TableSource) -> _ColumnsOfPlot:
    """The plotted columns with a value; of a paired plot, those whose counterpart has one, too."""
    table = source.table(layout_plot.name, layout_plot.title, plotted.every_column)
    models_with_value = _count_values(table)
    # a rank is one among several
    fewest = 2 if layout_plot.ranks else 1
    if not plotted.counterparts:
        columns = [column for column in plotted.columns if models_with_value[column.key] >= fewest]
        return _ColumnsOfPlot(columns)
    columns, counterparts = [], []
    for column, counterpart in zip(plotted.columns, plotted.counterparts, strict=True):
        if min(models_with_value[column.key], models_with_value[counterpart.key]) >= fewest:
            columns.append(column)
            counterparts.append(counterpart)
    return _ColumnsOfPlot(columns, counterparts)


def _count_values(table: BoardTable) -> Counter[str]:
    """The number of comparable rows with a value, by column key."""
    counts: Counter[str] = Counter()
    for row in table.rows:
        for key, cell in row.cells.items():
            if cell.value is not None:
                counts[key] += 1
    return counts


def _table_with(columns: Sequence[BoardColumn], tables: Sequence[BoardTable]) -> BoardTable | None:
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

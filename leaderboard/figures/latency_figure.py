"""The figure of a score against the median seconds of an answer."""

from __future__ import annotations

from ..board.model_order import model_order
from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import UNITS
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardTable, Cell
from .figure import Figure
from .scatter import Amount, ScatterModel, scatter_figure


def latency_figure(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """The first of the plot's columns against the second, in the plot's table; None without it."""
    table = _table_of(benchmark, plot)
    if table is None:
        return None
    columns = {column.key: column for column in table.columns}
    score_key, latency_key = plot.columns
    latency_column = columns[latency_key]
    order = model_order(benchmark)
    models = []
    for row in sorted(table.rows, key=lambda row: order[row.model]):
        score = row.cells.get(score_key)
        if score is not None:
            amount = _amount(row.cells.get(latency_key))
            models.append(ScatterModel(row.model, score, amount))
    title = f"{latency_column.label.lower()} ({UNITS[latency_column.unit]})"
    return scatter_figure(board, plot, columns[score_key], title, models)


def _table_of(benchmark: BenchmarkBoard, plot: BoardPlot) -> BoardTable | None:
    """The table that has the plot's numbers."""
    for table in benchmark.tables:
        if table.name == plot.table:
            return table
    return None


def _amount(cell: Cell | None) -> Amount | None:
    """The latency in a cell, with both ends of its interval if it has them."""
    if cell is None or cell.value is None:
        return None
    if cell.low is None or cell.high is None:
        return Amount(cell.value)
    return Amount(cell.value, (cell.low, cell.high))

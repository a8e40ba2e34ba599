"""The figure of a score against what the answers cost, in money, time or tokens."""

from __future__ import annotations

from itertools import chain

from ..board.model_order import model_order
from ..board.usage import Measure, plotted
from ..schema.board import BenchmarkBoard, Board
from ..schema.plot_data import BoardPlot, ModelUsage
from ..schema.score_tables import BoardColumn
from .figure import Figure
from .scatter import Amount, ScatterModel, scatter_figure


def cost_figure(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """The plot's score against the measure of cost that most models have; None without either."""
    measure = plotted([(entry.usage, entry.cost) for entry in benchmark.usage])
    column = _first_column(benchmark, plot)
    if measure is None or column is None:
        return None
    entries = {entry.model: entry for entry in benchmark.usage}
    order = [model for model in model_order(benchmark) if model in entries]
    models = []
    for model in order:
        entry = entries[model]
        models.append(ScatterModel(model, entry.score, _amount(measure, entry)))
    title = f"{measure.label.lower()} ({measure.unit})"
    return scatter_figure(board, plot, column, title, models)


def _amount(measure: Measure, entry: ModelUsage) -> Amount | None:
    """What a model's answers cost; None if it is not known."""
    cost = measure.value(entry.usage, entry.cost)
    return None if cost is None else Amount(cost)


def _first_column(benchmark: BenchmarkBoard, plot: BoardPlot) -> BoardColumn | None:
    """The first column in the benchmark's tables that the plot shows."""
    for column in chain.from_iterable(table.columns for table in benchmark.tables):
        if column.key in plot.columns:
            return column
    return None

"""A ranking as a chart: a row for each model with its interval, value and letters, and a sentence on what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..board.board import BenchmarkBoard, Board, Ranking
from ..board.sentences import finding
from .cells import cell_view, scale_of, shared_judge
from .tables import RowView, letters_of

MOST_ROWS = 12
"""Models in a chart; the table below has all."""


@dataclass(frozen=True)
class Chart:
    """The models of a ranking, best first, each with its score and, below it, its blind run, which is not ranked.

    All intervals are drawn on one scale. ``more`` counts the models left out, ``finding`` says what the chart shows,
    ``judge`` who judged all its scores.
    """

    benchmark: BenchmarkBoard
    ranking: Ranking
    rows: tuple[RowView, ...]
    more: int
    finding: str
    judge: str = ""


def charts(board: Board, benchmark: BenchmarkBoard) -> Iterator[Chart]:
    """A chart for each ranking with a ranked model."""
    for ranking in benchmark.rankings:
        if ranking.ranked:
            yield _chart(board, benchmark, ranking)


def overview_charts(board: Board) -> list[Chart]:
    """For each benchmark with a ranking, its first one in which a model is ranked; if there is none, an empty chart."""
    return [
        next(charts(board, one), Chart(one, one.rankings[0], (), 0, "No model is ranked."))
        for one in board.benchmarks
        if one.rankings
    ]


def _chart(board: Board, benchmark: BenchmarkBoard, ranking: Ranking) -> Chart:
    column = ranking.column
    every = {row.model: row.cells[column.key] for row in benchmark.tables[0].rows if column.key in row.cells}
    apart = [
        one.row for one in benchmark.tables[0].apart if one.row.blind and len(one.reasons) == 1
    ]  # that it is blind
    blind = {row.model: row.cells[column.key] for row in apart if column.key in row.cells}
    shown = [one.model for one in ranking.ranked[:MOST_ROWS]]
    judge = shared_judge([*every.values(), *blind.values()])
    scale = scale_of(column, [cells[model] for cells in (every, blind) for model in shown if model in cells])
    rows = []
    for model in shown:
        cell = cell_view(column, every[model], scale, judge=judge)
        rows.append(RowView(board.models[model], (replace(cell, letters=letters_of(ranking, model)),)))
        if model in blind:
            rows.append(
                RowView(board.models[model], (cell_view(column, blind[model], scale, judge=judge),), blind=True)
            )
    more = len(ranking.ranked) - len(shown)
    return Chart(benchmark, ranking, tuple(rows), more, finding(ranking, board.models, every), judge)

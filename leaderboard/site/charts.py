"""The charts of the overview and of benchmarks' pages: a ranking's models, best first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..board.findings import finding
from ..schema import board as schema
from .tables import ColumnView, is_beside_its_model

MOST_ROWS = 12
"""Models in a chart; the table below has all."""


class Chart(NamedTuple):
    """The models of a ranking, best first, each with its score and, below it, its blind run, which
    is not ranked; ``more`` counts the models left out.
    """

    benchmark: schema.BenchmarkBoard
    ranking: schema.Ranking
    view: ColumnView
    rows: tuple[schema.BoardRow, ...] = ()
    more: int = 0
    finding: str = "No model is ranked."


def charts(board: schema.Board, benchmark: schema.BenchmarkBoard) -> Iterator[Chart]:
    """A chart for each ranking with a ranked model."""
    for ranking in benchmark.rankings:
        if ranking.ranked:
            yield _chart(board, benchmark, ranking)


def _chart(board: schema.Board, benchmark: schema.BenchmarkBoard, ranking: schema.Ranking) -> Chart:
    table = benchmark.tables[0]
    column = ranking.column
    seeing = {row.model: row for row in table.rows if column.key in row.cells}
    blind = {}
    for row in table.apart:
        if column.key in row.cells and is_beside_its_model(table, row):
            blind[row.model] = row

    drawn = []
    for place in ranking.ranked[:MOST_ROWS]:
        if place.model in seeing:
            drawn.append(seeing[place.model])
        if place.model in blind:
            drawn.append(blind[place.model])
    view = ColumnView(column, judged=(*seeing.values(), *blind.values()), drawn=tuple(drawn))
    cells = {model: row.cells[column.key] for model, row in seeing.items()}
    more = max(0, len(ranking.ranked) - MOST_ROWS)
    summary = finding(ranking, board.models, cells)
    return Chart(benchmark, ranking, view, tuple(drawn), more, summary)


def overview_charts(board: schema.Board) -> list[Chart]:
    """For each benchmark with a ranking, its first one in which a model is ranked; if there is
    none, an empty chart.
    """
    overview = []
    for benchmark in board.benchmarks:
        if not benchmark.rankings:
            continue
        first = benchmark.rankings[0]
        empty = Chart(benchmark, first, ColumnView(first.column))
        overview.append(next(charts(board, benchmark), empty))
    return overview

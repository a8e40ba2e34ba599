"""The charts of the overview and of benchmarks' pages: a ranking's models, best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..board.findings import finding
from ..schema.board import BenchmarkBoard, Board
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardRow
from .tables import ColumnView, is_beside_its_model

MOST_ROWS = 12
"""Models in a chart; the table below has all."""


@dataclass(frozen=True)
class Chart:
    """The models of a ranking, best first, each with its blind run below it, which is not ranked.

    ``more`` counts the models left out, ``finding`` says in a sentence what the chart shows.
    """

    benchmark: BenchmarkBoard
    ranking: Ranking
    view: ColumnView
    rows: tuple[BoardRow, ...] = ()
    more: int = 0
    finding: str = "No model is ranked."


def charts(board: Board, benchmark: BenchmarkBoard) -> Iterator[Chart]:
    """A chart for each ranking with a ranked model."""
    for ranking in benchmark.rankings:
        if ranking.ranked:
            yield _chart(board, benchmark, ranking)


def _chart(board: Board, benchmark: BenchmarkBoard, ranking: Ranking) -> Chart:
    """The chart of one ranking."""
    table = benchmark.tables[0]
    column = ranking.column
    with_media = {row.model: row for row in table.rows if column.key in row.cells}
    blind = {}
    for row in table.apart:
        if column.key in row.cells and is_beside_its_model(table, row):
            blind[row.model] = row
    models = [place.model for place in ranking.ranked[:MOST_ROWS]]
    drawn = _drawn_rows(models, with_media, blind)
    cells = {model: row.cells[column.key] for model, row in with_media.items()}
    return Chart(
        benchmark=benchmark,
        ranking=ranking,
        view=ColumnView(column, judged=(*with_media.values(), *blind.values()), drawn=drawn),
        rows=drawn,
        more=max(0, len(ranking.ranked) - MOST_ROWS),
        finding=finding(ranking, board.models, cells),
    )


def _drawn_rows(
    models: Sequence[str],
    with_media: Mapping[str, BoardRow],
    blind: Mapping[str, BoardRow],
) -> tuple[BoardRow, ...]:
    """The rows of each model: its run with media, then its blind run."""
    rows = []
    for model in models:
        for by_model in (with_media, blind):
            if model in by_model:
                rows.append(by_model[model])
    return tuple(rows)


def overview_charts(board: Board) -> list[Chart]:
    """For each benchmark with rankings, the chart of its first one in which a model is ranked.

    If no model is ranked, the chart is empty.
    """
    overview = []
    for benchmark in board.benchmarks:
        if not benchmark.rankings:
            continue
        first = benchmark.rankings[0]
        empty = Chart(benchmark, first, ColumnView(first.column))
        overview.append(next(charts(board, benchmark), empty))
    return overview

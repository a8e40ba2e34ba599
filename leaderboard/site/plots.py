"""Figures on a benchmark's page, and the tables of those numbers that no other table holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from medtasks.stats import normalised_ranks

from ..board import BenchmarkBoard, Board, BoardPlot, BoardTable, LetterCounts, ModelFacts, Timeline
from .tables import ColumnView, column_view, model_order, subtitles

__all__ = [
    "Figure", "ItemRounds", "LettersOfTask", "PlotView", "RankTable", "letters_by_task", "plot_views",
    "rounds_by_item",
]  # fmt: skip


class Figure(Protocol):
    """A drawn figure (`medtasks.leaderboard.figures.FigureFiles`): what it shows in words, its files by format
    relative to the folder of figures, and its size in CSS pixels."""

    @property
    def alt(self) -> str: ...

    @property
    def files(self) -> Mapping[str, str]: ...

    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...


@dataclass(frozen=True)
class RankTable:
    """The numbers of a heat map of ranks: 0 the best, 1 the last; None where a model has no value, or one over too few
    verdicts."""

    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[ModelFacts, tuple[float | None, ...]], ...]


@dataclass(frozen=True)
class PlotView:
    """A plot, its figure where one was drawn, and where its numbers stand: an anchor of the page, or ``ranks``."""

    plot: BoardPlot
    figure: Figure | None
    anchor: str
    table: str
    ranks: RankTable | None = None


@dataclass(frozen=True)
class LettersOfTask:
    """How often each letter was right, and how often each model chose it."""

    task: str
    letters: tuple[str, ...]
    gold: Mapping[str, int]
    rows: tuple[tuple[ModelFacts, LetterCounts], ...]


@dataclass(frozen=True)
class ItemRounds:
    """One streaming item: its rounds' times, and each model's rounds by time."""

    task: str
    item: str
    first: Timeline
    times: tuple[float, ...]
    rows: tuple[tuple[ModelFacts, Timeline], ...]


def plot_views(
    board: Board, benchmark: BenchmarkBoard, figures: Mapping[tuple[str, str], Figure]
) -> tuple[PlotView, ...]:
    """The plots of ``benchmark``, each with the place of its numbers."""
    titles = {table.name: table for table in benchmark.tables}
    views = []
    for plot in benchmark.plots:
        figure = figures.get((benchmark.name, plot.name))
        if plot.kind in ("letters", "timeline"):
            anchor, title = ("letters", "Letters") if plot.kind == "letters" else ("timelines", "Streaming items")
            views.append(PlotView(plot, figure, anchor, title))
            continue
        table = titles.get(plot.table)
        ranks = _rank_table(board, benchmark, table, plot) if plot.ranks and table else None
        views.append(PlotView(plot, figure, f"table-{plot.table}", table.title if table else plot.table, ranks))
    return tuple(views)


def _rank_table(board: Board, benchmark: BenchmarkBoard, table: BoardTable, plot: BoardPlot) -> RankTable:
    order = model_order(benchmark)
    rows = sorted((row for row in table.rows if not row.blind), key=lambda row: order[row.model])
    by_key = {column.key: column for column in table.columns}
    columns = [by_key[key] for key in plot.columns if key in by_key and not by_key[key].signed]
    shares = []
    for column in columns:
        cells = [row.cells.get(column.key) for row in rows]
        shares.append(
            normalised_ranks(
                [None if cell is None or cell.incomplete else cell.value for cell in cells],
                higher_is_better=column.higher_is_better,
            )
        )
    subs = subtitles(columns)
    return RankTable(
        tuple(column_view(column, subs.get(column.key, "")) for column in columns),
        tuple((board.models[row.model], tuple(one[place] for one in shares)) for place, row in enumerate(rows)),
    )


def letters_by_task(board: Board, benchmark: BenchmarkBoard) -> tuple[LettersOfTask, ...]:
    """A table for each task whose options have letters."""
    order = model_order(benchmark)
    by_task: dict[str, list[LetterCounts]] = {}
    for one in benchmark.letters:
        by_task.setdefault(one.task, []).append(one)
    found = []
    for task, counts in sorted(by_task.items()):
        counts.sort(key=lambda one: (order.get(one.model, len(order)), one.model))
        gold = counts[0].gold
        letters = [*sorted(gold), *sorted({letter for one in counts for letter in one.chosen} - set(gold))]
        rows = tuple((board.models[one.model], one) for one in counts)
        found.append(LettersOfTask(task, tuple(letters), gold, rows))
    return tuple(found)


def rounds_by_item(board: Board, benchmark: BenchmarkBoard) -> tuple[ItemRounds, ...]:
    """A table for each streaming item."""
    order = model_order(benchmark)
    by_item: dict[tuple[str, str], list[Timeline]] = {}
    for one in benchmark.timelines:
        by_item.setdefault((one.task, one.item), []).append(one)
    found = []
    for (task, item), lines in sorted(by_item.items()):
        lines.sort(key=lambda one: (order.get(one.model, len(order)), one.model))
        times = sorted({each.time for one in lines for each in one.rounds})
        rows = tuple((board.models[one.model], one) for one in lines)
        found.append(ItemRounds(task, item, lines[0], tuple(times), rows))
    return tuple(found)

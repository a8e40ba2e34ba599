"""The first page: who is best at what, all models by all headline scores, and what is in no ranking."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..board import BenchmarkBoard, Board, BoardRow, ModelFacts, Ranking
from .cells import CellView, best_values, cell_view, scale_of
from .numbers import number
from .tables import ColumnView, RowView, TableView, column_view, rank_cell

__all__ = ["Leader", "SetApart", "all_models", "leaders", "set_apart"]


@dataclass(frozen=True)
class Leader:
    """Who is best by one headline score. ``equals`` are the others that cannot be told apart from the best."""

    benchmark: BenchmarkBoard
    ranking: Ranking
    column: ColumnView
    model: ModelFacts | None
    cell: CellView
    equals: tuple[ModelFacts, ...]
    detectable: str


@dataclass(frozen=True)
class SetApart:
    """A model's results on a benchmark that share no ranking: on how many of its tables, and why. Where that is so of
    the headline scores, the reasons are theirs."""

    model: ModelFacts
    blind: bool
    benchmark: BenchmarkBoard
    tables: int
    reasons: tuple[str, ...]


def leaders(board: Board) -> tuple[Leader, ...]:
    """One for each ranking, the first of a benchmark first."""
    return tuple(_leader(board, one, ranking) for one in board.benchmarks for ranking in one.rankings)


def _leader(board: Board, benchmark: BenchmarkBoard, ranking: Ranking) -> Leader:
    column = ranking.column
    detectable = "" if ranking.detectable is None else number(ranking.detectable, column.unit)
    view = column_view(column)
    if not ranking.ranked:
        return Leader(benchmark, ranking, view, None, CellView("", reason="no model is ranked"), (), detectable)
    best = ranking.ranked[0]
    row = next(row for row in benchmark.tables[0].rows if row.model == best.model and column.key in row.cells)
    letters = set(best.letters)
    equals = tuple(board.models[one.model] for one in ranking.ranked[1:] if letters & set(one.letters))
    cell = cell_view(column, row.cells[column.key])
    return Leader(benchmark, ranking, view, board.models[best.model], cell, equals, detectable)


def all_models(board: Board) -> TableView:
    """Every model that some benchmark compares, with the first headline score of each, and its letters."""
    rows: dict[str, dict[str, BoardRow]] = {}
    for benchmark in board.benchmarks:
        for row in benchmark.tables[0].rows if benchmark.tables else ():
            if not row.blind:
                rows.setdefault(row.model, {})[benchmark.name] = row
    columns, cells = [], []
    for benchmark in board.benchmarks:
        held = [row[benchmark.name] for row in rows.values() if benchmark.name in row]
        for ranking in benchmark.rankings[:1]:
            column = ranking.column
            scale = scale_of(column, [row.cells[column.key] for row in held if column.key in row.cells])
            columns.append(replace(column_view(column), of=benchmark.title))
            cells.append((benchmark.name, ranking, scale, best_values([column], held).get(column.key)))

    def view(model: str, by_benchmark: dict[str, BoardRow]) -> RowView:
        found = []
        for name, ranking, scale, best in cells:
            row = by_benchmark.get(name)
            cell = cell_view(ranking.column, row.cells.get(ranking.column.key) if row else None, scale, best)
            letters = rank_cell(ranking, model)[1].text
            found.append(replace(cell, letters=letters))
        return RowView(board.models[model], tuple(found))

    ordered = sorted(rows, key=lambda model: (_ranks(board, model), board.models[model].name, model))
    return TableView("models", "All models", "", tuple(columns), tuple(view(one, rows[one]) for one in ordered), (), ())


def _ranks(board: Board, model: str) -> tuple[int, ...]:
    """The model's ranks in the order of the board; no rank comes last."""
    ranks = [{one.model: one.rank for one in ranking.ranked} for it in board.benchmarks for ranking in it.rankings[:1]]
    return tuple(found.get(model, len(board.models) + 1) for found in ranks)


def set_apart(board: Board) -> tuple[SetApart, ...]:
    """What stands on some table without sharing its ranking, a row for each model and benchmark."""
    found = []
    for benchmark in board.benchmarks:
        reasons: dict[tuple[str, bool], dict[str, tuple[str, ...]]] = {}
        for table in benchmark.tables:
            for one in table.apart:
                said = reasons.setdefault((one.row.model, one.row.blind), {})
                said[table.name] = tuple(dict.fromkeys((*said.get(table.name, ()), *one.reasons)))
        headline = benchmark.tables[0].name if benchmark.tables else ""
        for (model, blind), said in reasons.items():
            counted = [said[headline]] if headline in said else list(said.values())
            once = tuple(dict.fromkeys(reason for each in counted for reason in each))
            found.append(SetApart(board.models[model], blind, benchmark, len(said), once))
    return tuple(sorted(found, key=lambda one: (one.model.name.casefold(), one.model.slug, one.blind)))

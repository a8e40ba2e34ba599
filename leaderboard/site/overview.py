"""The tables of the overview page: all models, and what is not comparable."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..board.board import Apart, BenchmarkBoard, Board, BoardRow, BoardTable, ModelFacts
from .cells import CellView, best_values, cell_view, scale_of, shared_judge
from .tables import RowView, TableView, column_view, letters_of


@dataclass(frozen=True)
class NotComparable:
    """A model's results on a benchmark that are not comparable: on how many of its tables, and why (for the headline
    scores, if they are among them)."""

    model: ModelFacts
    blind: bool
    benchmark: BenchmarkBoard
    tables: int
    reasons: tuple[str, ...]


def all_models(board: Board) -> TableView:
    """Every model that a benchmark compares, with each benchmark's first headline score and its letters."""
    rows: dict[str, dict[str, BoardRow]] = {}
    for benchmark in board.benchmarks:
        for row in benchmark.tables[0].rows:
            if not row.blind:
                rows.setdefault(row.model, {})[benchmark.name] = row
    columns = []
    cells: dict[str, list[CellView]] = {model: [] for model in rows}
    places: dict[str, list[int]] = {model: [] for model in rows}
    for benchmark in board.benchmarks:
        benchmark_rows = [row[benchmark.name] for row in rows.values() if benchmark.name in row]
        for ranking in benchmark.rankings[:1]:
            column = ranking.column
            found = {row.model: row.cells[column.key] for row in benchmark_rows if column.key in row.cells}
            judge = shared_judge(found.values())
            columns.append(replace(column_view(column, judge=judge), of=benchmark.title))
            scale, best = scale_of(column, found.values()), best_values([column], benchmark_rows).get(column.key)
            ranks = {one.model: one.rank for one in ranking.ranked}
            for model in rows:
                cell = cell_view(column, found.get(model), scale, best, judge)
                cells[model].append(replace(cell, letters=letters_of(ranking, model)))
                places[model].append(ranks.get(model, len(board.models) + 1))
    ordered = sorted(rows, key=lambda model: (places[model], board.models[model].name, model))
    views = tuple(RowView(board.models[model], tuple(cells[model])) for model in ordered)
    return TableView("models", "All models", "", tuple(columns), views, (), {})


def is_beside_its_model(table: BoardTable, apart: Apart) -> bool:
    """Whether a row that is not comparable is just a ranked model's blind run: every page shows it below that model."""
    ranked = {row.model for row in table.rows}
    return apart.row.blind and apart.row.model in ranked and len(apart.reasons) == 1  # that it is blind


def not_comparable(board: Board) -> list[NotComparable]:
    """The rows of tables that are not comparable, once for each model and benchmark."""
    found = []
    for benchmark in board.benchmarks:
        reasons: dict[tuple[str, bool], dict[str, dict[str, None]]] = {}
        for table in benchmark.tables:
            for one in (one for one in table.apart if not is_beside_its_model(table, one)):
                by_table = reasons.setdefault((one.row.model, one.row.blind), {})
                by_table.setdefault(table.name, {}).update(dict.fromkeys(one.reasons))
        for (model, blind), by_table in reasons.items():
            headline = by_table.get(benchmark.tables[0].name)
            counted = [headline] if headline is not None else by_table.values()
            once = tuple(dict.fromkeys(reason for each in counted for reason in each))
            found.append(NotComparable(board.models[model], blind, benchmark, len(by_table), once))
    return sorted(found, key=lambda one: (one.model.name.casefold(), one.model.slug, one.blind))

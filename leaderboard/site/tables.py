"""The tables and charts of the overview and of benchmarks' pages: comparable models, their blind runs, the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from ..board.board import (
    Apart,
    BenchmarkBoard,
    Board,
    BoardModel,
    BoardRow,
    BoardTable,
    Published,
    PublishedCell,
    Ranking,
)
from ..board.numbers import shown_name
from ..board.rows import without_empty
from ..board.sentences import finding
from .cells import (
    ColumnView,
    best_of,
    cells_of,
    column_view,
    missing,
    scale_of,
    shared_judge,
    table_columns,
)

MOST_ROWS = 12
"""Models in a chart; the table below has all."""


@dataclass(frozen=True)
class TableView:
    """A table of the board: its columns, the rows of ranked models, best first, and ``apart`` those that are not
    comparable. ``beside`` has by ranked model its blind runs, ``missing`` the empty cells by reason; ``rankings`` are
    those of the headline table."""

    content: BoardTable
    columns: Sequence[ColumnView]
    rows: Sequence[BoardRow]
    beside: Mapping[str, Sequence[Apart]]
    apart: Sequence[Apart]
    missing: Mapping[str, Sequence[str]]
    rankings: Sequence[Ranking]


@dataclass(frozen=True)
class Chart:
    """The models of a ranking, best first, each with its score and, below it, its blind run, which is not ranked.

    ``more`` counts the models left out, ``finding`` says what the chart shows.
    """

    benchmark: BenchmarkBoard
    ranking: Ranking
    column: ColumnView
    rows: tuple[BoardRow, ...]
    more: int
    finding: str


@dataclass(frozen=True)
class NotComparable:
    """A model's results on a benchmark that are not comparable: on how many of its tables, and why (for the headline
    scores, if they are among them)."""

    model: BoardModel
    blind: bool
    benchmark: BenchmarkBoard
    tables: int
    reasons: tuple[str, ...]


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """The order of models in all tables of a benchmark: by the first score that ranks any, then the others by slug."""
    ranked = next(([one.model for one in ranking.ranked] for ranking in benchmark.rankings if ranking.ranked), [])
    others = {row.model for table in benchmark.tables for row in (*table.rows, *(one.row for one in table.apart))}
    return {model: place for place, model in enumerate([*ranked, *sorted(others - set(ranked))])}


def benchmark_tables(board: Board, benchmark: BenchmarkBoard) -> list[TableView]:
    """The first table of ``benchmark``, with ranks and letters beside its scores, and all others with results.

    Columns that have only published figures are left out, except in the first.
    """
    order = model_order(benchmark)
    first, *others = benchmark.tables
    shown = [without_empty(table) for table in others if table.rows or table.apart]
    return [_table(board, first, order, benchmark.rankings), *(_table(board, table, order, ()) for table in shown)]


def _table(board: Board, table: BoardTable, order: Mapping[str, int], rankings: Sequence[Ranking]) -> TableView:
    rows = sorted((row for row in table.rows if not row.blind), key=lambda row: order[row.model])
    aside = [*table.apart, *(Apart(row=row, reasons=()) for row in table.rows if row.blind)]
    aside.sort(key=lambda one: order[one.row.model])
    ranked = {row.model for row in rows}
    beside: dict[str, list[Apart]] = {}
    apart: list[Apart] = []
    for one in aside:
        of_model = one.row.blind and one.row.model in ranked
        (beside.setdefault(one.row.model, []) if of_model else apart).append(one)
    every = [*rows, *(one.row for one in aside)]
    columns = table_columns(table.columns, every, rows, {ranking.column.key: ranking for ranking in rankings})
    return TableView(table, [*columns], rows, beside, apart, _missing(board, table), rankings)


def _missing(board: Board, table: BoardTable) -> dict[str, list[str]]:
    """By reason, the models with empty cells and their columns."""
    found: dict[str, list[str]] = {}
    rows = [*(row for row in table.rows if not row.blind), *(one.row for one in table.apart)]
    for row in (*rows, *(row for row in table.rows if row.blind)):
        empty: dict[str, list[str]] = {}
        for column in table.columns:
            if reason := missing(row.cells.get(column.key)):
                empty.setdefault(reason, []).append(column.label)
        for reason, labels in empty.items():
            columns = "all columns" if len(labels) == len(table.columns) > 1 else ", ".join(labels)
            found.setdefault(reason, []).append(f"{shown_name(board, row.model, row.blind)}: {columns}")
    return dict(sorted(found.items()))


def charts(board: Board, benchmark: BenchmarkBoard) -> Iterator[Chart]:
    """A chart for each ranking with a ranked model."""
    for ranking in benchmark.rankings:
        if ranking.ranked:
            yield _chart(board, benchmark, ranking)


def overview_charts(board: Board) -> list[Chart]:
    """For each benchmark with a ranking, its first one in which a model is ranked; if there is none, an empty chart."""
    return [
        next(charts(board, one), Chart(one, ranking, column_view(ranking.column), (), 0, "No model is ranked."))
        for one in board.benchmarks
        for ranking in one.rankings[:1]
    ]


def _chart(board: Board, benchmark: BenchmarkBoard, ranking: Ranking) -> Chart:
    column, table = ranking.column, benchmark.tables[0]
    seeing = {row.model: row for row in table.rows if column.key in row.cells}
    beside = [one.row for one in table.apart if one.row.blind and len(one.reasons) == 1]  # that it is blind
    blind = {row.model: row for row in beside if column.key in row.cells}
    shown = [one.model for one in ranking.ranked[:MOST_ROWS]]
    rows = [rows[model] for model in shown for rows in (seeing, blind) if model in rows]
    view = column_view(
        column,
        judge=shared_judge(cells_of(column.key, (*seeing.values(), *blind.values()))),
        scale=scale_of(column, cells_of(column.key, rows)),
        ranking=ranking,
    )
    cells = {model: row.cells[column.key] for model, row in seeing.items()}
    more = len(ranking.ranked) - len(shown)
    return Chart(benchmark, ranking, view, tuple(rows), more, finding(ranking, board.models, cells))


def all_models(board: Board) -> tuple[list[ColumnView], list[BoardRow]]:
    """Each benchmark's first headline score, and a row for every model that a benchmark compares."""
    found: dict[str, BoardRow] = {}
    for row in (row for benchmark in board.benchmarks for row in benchmark.tables[0].rows if not row.blind):
        known = found.get(row.model, row)
        found[row.model] = row.model_copy(update={"cells": {**known.cells, **row.cells}})
    rows = [*found.values()]
    columns = []
    for benchmark in board.benchmarks:
        for ranking in benchmark.rankings[:1]:
            cells, best = cells_of(ranking.column.key, rows), best_of(ranking.column, rows)
            view = column_view(ranking.column, of=benchmark.title, judge=shared_judge(cells), ranking=ranking)
            columns.append(replace(view, scale=scale_of(ranking.column, cells), best=best))
    ranks = [{one.model: one.rank for one in column.ranking.ranked} for column in columns if column.ranking]

    def place(row: BoardRow) -> tuple[list[int], str, str]:
        return [one.get(row.model, len(board.models) + 1) for one in ranks], board.models[row.model].name, row.model

    return columns, sorted(rows, key=place)


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


@dataclass(frozen=True)
class PublishedTable:
    """The rows of one table of a paper. ``columns`` are those of the board by key; for other figures, headings alone.

    ``notes`` are all notes, numbered from 1; ``not_comparable`` are the reasons why figures cannot be compared with
    ours, each with the columns it is about.
    """

    rows: Sequence[Published]
    columns: Mapping[str, ColumnView]
    notes: Mapping[str, int]
    not_comparable: Mapping[str, Sequence[str]]


def published_tables(benchmark: BenchmarkBoard) -> list[PublishedTable]:
    """The published rows of ``benchmark``, table by table, in printed order."""
    tables: dict[tuple[str, str, str], list[Published]] = {}
    for row in benchmark.published:
        tables.setdefault((row.paper, row.table, row.source), []).append(row)
    known = {column.key: column for table in benchmark.tables for column in table.columns}
    found = []
    for rows in tables.values():
        cells = [cell for row in rows for cell in row.cells]
        keys = dict.fromkeys(cell.column for cell in cells)
        columns = {
            key: column_view(known[key]) if key in known else ColumnView(f"c{place}", key)
            for place, key in enumerate(keys)
        }
        texts = dict.fromkeys(
            note for row in rows for note in (*row.notes, *(n for one in row.cells for n in one.notes))
        )
        reasons: dict[str, dict[str, None]] = {}
        for cell in cells:
            if cell.why:
                reasons.setdefault(cell.why, {})[columns[cell.column].label] = None
        notes = {text: number for number, text in enumerate(texts, 1)}
        found.append(PublishedTable(rows, columns, notes, {why: list(labels) for why, labels in reasons.items()}))
    return found


def is_printed_so(cell: PublishedCell, text: str) -> bool:
    """Whether the paper prints the number ``text``, apart from trailing zeros."""
    try:
        return cell.printed is None or Decimal(cell.printed.strip(" %")) == Decimal(text.replace("−", "-"))
    except InvalidOperation:
        return False

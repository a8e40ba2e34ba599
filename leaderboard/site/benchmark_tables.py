"""The tables of a benchmark's page: what has a value is shown, all else folded with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..board.model_order import model_order
from ..board.tables import without_empty
from ..schema.board import BenchmarkBoard, Board
from ..schema.model_rankings import Ranking
from ..schema.numbers import shown_name
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable, Cell
from .tables import ColumnView, subtitles, why_none


@dataclass(frozen=True)
class Folded:
    """A column, a model or a whole table without any value, and why."""

    label: str
    why: str


@dataclass(frozen=True)
class BenchmarkTable:
    """A table as a benchmark's page shows it.

    ``rows`` are those of ranked models, best first, and ``apart`` those that are not comparable.
    ``beside`` has the blind runs by ranked model, ``missing`` the models with empty cells and
    their columns by reason. ``rankings`` are those of the headline table, in which alone intervals
    are drawn. No row has a value in ``folded_columns``, and ``folded_rows`` have none in any
    column.
    """

    content: BoardTable
    columns: Sequence[ColumnView]
    rows: Sequence[BoardRow]
    apart: Sequence[BoardRow]
    beside: Mapping[str, Sequence[BoardRow]]
    missing: Mapping[str, Sequence[str]]
    rankings: Sequence[Ranking]
    folded_columns: Sequence[Folded]
    folded_rows: Sequence[Folded]


@dataclass(frozen=True)
class BenchmarkTables:
    """The tables of a benchmark's page, the headline table first, and those without any value."""

    shown: Sequence[BenchmarkTable]
    folded: Sequence[Folded]


def benchmark_tables(board: Board, benchmark: BenchmarkBoard) -> BenchmarkTables:
    """The tables of ``benchmark`` that have results.

    In all but the headline table, columns that have only published figures are left out.
    """
    headline, *further = benchmark.tables
    visible = [_table(board, benchmark, headline)]
    folded = []
    for complete_table in further:
        if not complete_table.every_row:
            continue
        table = without_empty(complete_table)
        if any(_has_value(row, table.columns) for row in table.every_row):
            visible.append(_table(board, benchmark, table))
            continue
        cells: list[Cell] = []
        for row in table.every_row:
            cells.extend(row.cells.values())
        folded.append(Folded(table.title, why_none(cells)))
    return BenchmarkTables(visible, folded)


@dataclass
class _SortedRows:
    """A table's rows by where a page shows them; see `BenchmarkTable`."""

    ranked: list[BoardRow]
    apart: list[BoardRow]
    beside: dict[str, list[BoardRow]]
    folded: list[BoardRow]

    @property
    def in_table(self) -> Iterator[BoardRow]:
        """All rows that are not folded."""
        yield from self.ranked
        for blind_rows in self.beside.values():
            yield from blind_rows
        yield from self.apart


def _sorted_rows(
    benchmark: BenchmarkBoard,
    table: BoardTable,
    valued: Sequence[BoardColumn],
) -> _SortedRows:
    """The rows in the order of models.

    The headline table has a row for every ranked model, because it has the models' facts; other
    tables only those with a value in one of the columns ``valued``.
    """
    is_headline = table.name == benchmark.tables[0].name
    order = model_order(benchmark)

    def place_of(row: BoardRow) -> int:
        return order[row.model]

    ranked_models = {row.model for row in table.rows}
    rows = _SortedRows([], [], defaultdict(list), [])
    for row in sorted(table.apart, key=place_of):
        if not row.blind or row.model not in ranked_models:
            rows.apart.append(row)
        elif is_headline or _has_value(row, valued):
            rows.beside[row.model].append(row)
        else:
            rows.folded.append(row)
    for row in sorted(table.rows, key=place_of):
        # a blind run with a value stays below its model
        if is_headline or row.model in rows.beside or _has_value(row, valued):
            rows.ranked.append(row)
        else:
            rows.folded.append(row)
    return rows


def _table(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> BenchmarkTable:
    """A table as its benchmark's page shows it."""
    valued = [column for column in table.columns if _column_has_value(table, column)]
    subs = subtitles(table.columns)
    rows = _sorted_rows(benchmark, table, valued)
    rankings: dict[str, Ranking] = {}
    if table.name == benchmark.tables[0].name:
        rankings = _rankings_of(benchmark, valued)

    drawn = table.every_row if rankings else ()
    views = []
    for column in valued:
        remarks = [text for text in (subs[column.key], column.remark) if text]
        view = ColumnView(
            column,
            judged=table.every_row,
            drawn=drawn,
            competing=rows.ranked if table.compared else (),
            sub=", ".join(remarks),
            ranking=rankings.get(column.key),
        )
        views.append(view)
    return BenchmarkTable(
        content=table,
        columns=views,
        rows=rows.ranked,
        apart=rows.apart,
        beside=rows.beside,
        missing=_missing(board, valued, rows.in_table),
        rankings=list(rankings.values()),
        folded_columns=_folded_columns(table, subs),
        folded_rows=_folded_rows(board, rows.folded, valued),
    )


def _folded_rows(
    board: Board, rows: Sequence[BoardRow], columns: Sequence[BoardColumn]
) -> list[Folded]:
    """The models without any value in the columns, with the reason."""
    folded = []
    for row in rows:
        cells = [row.cells.get(column.key) for column in columns]
        folded.append(Folded(shown_name(board, row.model, row.blind), why_none(cells)))
    return folded


def _folded_columns(table: BoardTable, subs: Mapping[str, str]) -> list[Folded]:
    """The columns without any value, with the reason."""
    folded = []
    for column in table.columns:
        if _column_has_value(table, column):
            continue
        label = " ".join(text for text in (column.label, subs[column.key]) if text)
        cells = [row.cells.get(column.key) for row in table.every_row]
        folded.append(Folded(label, why_none(cells) or "not run"))
    return folded


def _rankings_of(benchmark: BenchmarkBoard, columns: Sequence[BoardColumn]) -> dict[str, Ranking]:
    """The benchmark's rankings by one of the columns, by the column's key."""
    keys = {column.key for column in columns}
    rankings = {}
    for ranking in benchmark.rankings:
        if ranking.column.key in keys:
            rankings[ranking.column.key] = ranking
    return rankings


def _column_has_value(table: BoardTable, column: BoardColumn) -> bool:
    return any(_has_value(row, [column]) for row in table.every_row)


def _has_value(row: BoardRow, columns: Iterable[BoardColumn]) -> bool:
    cells = (row.cells.get(column.key) for column in columns)
    return any(cell is not None and cell.value is not None for cell in cells)


def _missing(
    board: Board, columns: Sequence[BoardColumn], rows: Iterable[BoardRow]
) -> dict[str, list[str]]:
    """By reason, sorted, the models with empty cells, each with the labels of the columns."""
    missing: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        empty: dict[str, list[str]] = defaultdict(list)
        for column in columns:
            cell = row.cells.get(column.key)
            if cell is None or cell.value is None:
                empty[why_none([cell])].append(column.label)
        for reason, labels in empty.items():
            where = "all columns" if len(labels) == len(columns) > 1 else ", ".join(labels)
            missing[reason].append(f"{shown_name(board, row.model, row.blind)}: {where}")
    return dict(sorted(missing.items()))

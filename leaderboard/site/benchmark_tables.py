"""The tables of a benchmark's page: what has a value is shown, all else folded with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..board.tables import without_empty
from ..figures.plots import model_order
from ..schema import board as schema
from ..schema.numbers import shown_name
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

    content: schema.BoardTable
    columns: Sequence[ColumnView]
    rows: Sequence[schema.BoardRow]
    apart: Sequence[schema.BoardRow]
    beside: Mapping[str, Sequence[schema.BoardRow]]
    missing: Mapping[str, Sequence[str]]
    rankings: Sequence[schema.Ranking]
    folded_columns: Sequence[Folded]
    folded_rows: Sequence[Folded]


@dataclass(frozen=True)
class BenchmarkTables:
    """The tables of a benchmark's page, the headline table first, and those without any value."""

    shown: Sequence[BenchmarkTable]
    folded: Sequence[Folded]


def benchmark_tables(board: schema.Board, benchmark: schema.BenchmarkBoard) -> BenchmarkTables:
    """The tables of ``benchmark`` that have results. In all but the headline table, columns that
    have only published figures are left out."""
    headline, *others = benchmark.tables
    shown = [_table(board, benchmark, headline)]
    folded = []
    for table in (without_empty(other) for other in others if other.every_row):
        if any(_has_value(row, table.columns) for row in table.every_row):
            shown.append(_table(board, benchmark, table))
        else:
            cells = [cell for row in table.every_row for cell in row.cells.values()]
            folded.append(Folded(table.title, why_none(cells)))
    return BenchmarkTables(shown, folded)


def _table(
    board: schema.Board, benchmark: schema.BenchmarkBoard, table: schema.BoardTable
) -> BenchmarkTable:
    """The headline table has a row for every ranked model, because it has the models' facts;
    others only those with a value."""
    is_headline = table.name == benchmark.tables[0].name
    valued = [column for column in table.columns if _column_has_value(table, column)]
    subs = subtitles(table.columns)
    folded_columns = []
    for column in table.columns:
        if column not in valued:
            label = " ".join(filter(None, (column.label, subs[column.key])))
            cells = [row.cells.get(column.key) for row in table.every_row]
            folded_columns.append(Folded(label, why_none(cells) or "not run"))

    order = model_order(benchmark)
    ranked = {row.model for row in table.rows}
    beside: dict[str, list[schema.BoardRow]] = defaultdict(list)
    apart: list[schema.BoardRow] = []
    folded_rows = []

    def fold(row: schema.BoardRow) -> None:
        cells = [row.cells.get(column.key) for column in valued]
        folded_rows.append(Folded(shown_name(board, row.model, row.blind), why_none(cells)))

    for row in sorted(table.apart, key=lambda row: order[row.model]):
        if not (row.blind and row.model in ranked):
            apart.append(row)
        elif is_headline or _has_value(row, valued):
            beside[row.model].append(row)
        else:
            fold(row)
    rows = []
    for row in sorted(table.rows, key=lambda row: order[row.model]):
        # a blind run with a value stays below its model
        if is_headline or row.model in beside or _has_value(row, valued):
            rows.append(row)
        else:
            fold(row)

    rankings: dict[str, schema.Ranking] = {}
    if is_headline:
        valued_keys = {column.key for column in valued}
        by_key = {ranking.column.key: ranking for ranking in benchmark.rankings}
        rankings = {key: ranking for key, ranking in by_key.items() if key in valued_keys}
    views = [
        ColumnView(
            column,
            judged=table.every_row,
            drawn=table.every_row if rankings else (),
            competing=rows,
            sub=", ".join(filter(None, (subs[column.key], column.remark))),
            ranking=rankings.get(column.key),
        )
        for column in valued
    ]
    in_table = [*rows, *(row for of_model in beside.values() for row in of_model), *apart]
    return BenchmarkTable(
        table,
        views,
        rows,
        apart,
        beside,
        _missing(board, valued, in_table),
        [*rankings.values()],
        folded_columns,
        folded_rows,
    )


def _column_has_value(table: schema.BoardTable, column: schema.BoardColumn) -> bool:
    return any(_has_value(row, [column]) for row in table.every_row)


def _has_value(row: schema.BoardRow, columns: Iterable[schema.BoardColumn]) -> bool:
    cells = (row.cells.get(column.key) for column in columns)
    return any(cell is not None and cell.value is not None for cell in cells)


def _missing(
    board: schema.Board, columns: Sequence[schema.BoardColumn], rows: Iterable[schema.BoardRow]
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

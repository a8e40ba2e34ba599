"""A model's page: its ranks, and for each benchmark its scores as lists, or as matrices of groups by tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardRow, BoardTable, Cell, Ranking
from ..board.numbers import UNIT_LABELS
from .cells import (
    ColumnView,
    cells_of,
    column_view,
    column_views,
    distinguishing,
    leading_words,
    scale_of,
    shared_judge,
)


@dataclass(frozen=True)
class ScoreRow:
    """One line: a column of the benchmark's table or, in a matrix, a group with one cell for each heading, None if that
    has no items of the group."""

    label: str
    sub: str
    cells: tuple[tuple[ColumnView, Cell | None], ...]


@dataclass(frozen=True)
class Matrix:
    """A table of one model; without ``headings`` each line is one score."""

    title: str
    headings: tuple[ColumnView, ...]
    rows: tuple[ScoreRow, ...]
    blind: bool = False
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One benchmark's results of the model. A place is a column, its ranking, and the model's score; ``runs`` are keys
    of `Board.runs`."""

    benchmark: BenchmarkBoard
    places: tuple[tuple[ColumnView, Ranking, Cell], ...]
    matrices: tuple[Matrix, ...]
    apart: tuple[Matrix, ...]
    runs: frozenset[str]


@dataclass(frozen=True)
class _Row:
    """The model's row of one table, and the columns it has."""

    table: BoardTable
    row: BoardRow
    reasons: tuple[str, ...]

    @property
    def columns(self) -> list[BoardColumn]:
        return [column for column in self.table.columns if column.key in self.row.cells]

    @property
    def breakdown(self) -> tuple[str, frozenset[str]] | None:
        """Breakdown and metrics of a table of one breakdown's groups, which may end with all items; else None."""
        breakdowns = {column.breakdown for column in self.columns} - {None}
        grouped = {column.metric for column in self.columns if column.group is not None}
        if len(breakdowns) != 1 or not grouped >= {column.metric for column in self.columns}:
            return None
        return str(breakdowns.pop()), frozenset(grouped)


def model_parts(board: Board, slug: str) -> list[Part]:
    """The benchmarks that have results of the model ``slug``."""
    parts = []
    for benchmark in board.benchmarks:
        rows = [
            _Row(table, row, reasons)
            for table in benchmark.tables
            for row, reasons in (*((row, ()) for row in table.rows), *((one.row, one.reasons) for one in table.apart))
            if row.model == slug
        ]
        others = [one for one in rows if one.row.blind or one.reasons]
        first = {one.row.runs: place for place, one in reversed(list(enumerate(others)))}
        others.sort(key=lambda one: (one.row.blind, first[one.row.runs]))
        if rows:
            parts.append(
                Part(
                    benchmark=benchmark,
                    places=tuple(_places(benchmark, slug)),
                    matrices=tuple(_matrices(one for one in rows if not one.row.blind and not one.reasons)),
                    apart=tuple(_matrices(others)),
                    runs=frozenset(key for one in rows for key in one.row.runs),
                )
            )
    return parts


def _places(benchmark: BenchmarkBoard, slug: str) -> Iterator[tuple[ColumnView, Ranking, Cell]]:
    for ranking in benchmark.rankings:
        column = ranking.column
        rows = [row for row in benchmark.tables[0].rows if not row.blind]
        view = column_view(column, scale=scale_of(column, cells_of(column.key, rows)))
        for row in rows:
            if row.model == slug and column.key in row.cells:
                yield view, ranking, row.cells[column.key]


def _matrices(rows: Iterable[_Row]) -> Iterator[Matrix]:
    """Consecutive tables that break the same metrics down by the same groups make one matrix."""
    for (_, blind, breakdown), bundle in groupby(rows, key=lambda one: (one.row.runs, one.row.blind, one.breakdown)):
        members = list(bundle)
        cells = {column.key: (column, one.row.cells[column.key]) for one in members for column in one.columns}
        columns = [column for column, _ in cells.values()]
        across, groups = {(one.task, one.metric) for one in columns}, {one.group for one in columns}
        if breakdown is not None and len(across) > 1 and len(groups) > 1:
            titles = [one.table.title for one in members]
            title = leading_words(titles, " ").rstrip(",;: ") or titles[0]
            reasons = tuple(dict.fromkeys(reason for one in members for reason in one.reasons))
            yield Matrix(title, *_grid(columns, {key: cell for key, (_, cell) in cells.items()}), blind, reasons)
            continue
        for one in members:
            lines = [
                ScoreRow(view.label, f"{view.sub} {view.unit}", ((view, one.row.cells[view.key]),))
                for view in column_views(one.columns)
            ]
            yield Matrix(one.table.title, (), tuple(lines), blind, one.reasons)


def _grid(
    columns: Sequence[BoardColumn], cells: Mapping[str, Cell]
) -> tuple[tuple[ColumnView, ...], tuple[ScoreRow, ...]]:
    """Headings, one for each task and metric, and a row for each group."""
    places = {(one.task, one.metric, one.group): one for one in columns}
    firsts = list({(one.task, one.metric): one for one in columns if one.group is not None}.values())
    judges = [
        shared_judge(cells[one.key] for one in columns if (one.task, one.metric) == (first.task, first.metric))
        for first in firsts
    ]
    headings = tuple(
        ColumnView(one.key, distinguishing(one, firsts), unit=UNIT_LABELS[one.unit], judge=judge, column=one)
        for one, judge in zip(firsts, judges, strict=True)
    )
    rows = []
    groups = {one.group: one.label if one.group is None else one.group for one in columns}
    for group, label in sorted(groups.items(), key=lambda one: (one[0] is None, one[1])):
        in_row = [places.get((one.task, one.metric, group)) for one in firsts]
        views = [(view, None if one is None else cells[one.key]) for view, one in zip(headings, in_row, strict=True)]
        rows.append(ScoreRow(label, "", tuple(views)))
    return headings, tuple(rows)

"""A model's page: its places, and for each benchmark its scores as lists, or as matrices of groups by tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..board import (
    BenchmarkBoard,
    Board,
    BoardColumn,
    BoardRow,
    BoardTable,
    LetterCounts,
    ModelFacts,
    RunFacts,
    Timeline,
)
from .cells import CellView, cell_view, scale_of
from .numbers import UNIT_LABELS
from .tables import ColumnView, column_view, rank_cell, subtitles, told_apart

__all__ = ["Matrix", "ModelPage", "Part", "Place", "ScoreRow", "model_page"]


@dataclass(frozen=True)
class Place:
    """The model's place in one ranking."""

    column: ColumnView
    cell: CellView
    rank: CellView
    group: CellView
    of: int


@dataclass(frozen=True)
class ScoreRow:
    """One line: a column of the benchmark's table or, in a matrix, a group with one cell for each heading."""

    label: str
    sub: str
    cells: tuple[CellView, ...]


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
    """What one benchmark says of the model."""

    benchmark: BenchmarkBoard
    trained: str
    places: tuple[Place, ...]
    matrices: tuple[Matrix, ...]
    apart: tuple[Matrix, ...]
    letters: tuple[LetterCounts, ...]
    timelines: tuple[Timeline, ...]


@dataclass(frozen=True)
class ModelPage:
    """All that the board holds of one model."""

    model: ModelFacts
    parts: tuple[Part, ...]
    runs: tuple[RunFacts, ...]


@dataclass(frozen=True)
class _Row:
    """The model's row of one table, and the columns that it has."""

    table: BoardTable
    row: BoardRow
    reasons: tuple[str, ...]

    @property
    def columns(self) -> list[BoardColumn]:
        return [column for column in self.table.columns if column.key in self.row.cells]

    @property
    def parts(self) -> tuple[str, frozenset[str]] | None:
        """The breakdown and the metrics of a table of one breakdown's groups, which may end with all of them together;
        None of any other table."""
        breakdowns = {column.breakdown for column in self.columns} - {None}
        grouped = {column.metric for column in self.columns if column.group is not None}
        if len(breakdowns) != 1 or not grouped >= {column.metric for column in self.columns}:
            return None
        return str(breakdowns.pop()), frozenset(grouped)


def model_page(board: Board, slug: str) -> ModelPage:
    """The page of the model ``slug``."""
    rows = {benchmark.name: list(_rows(benchmark, slug)) for benchmark in board.benchmarks}
    keys = {key for held in rows.values() for one in held for key in one.row.runs}
    runs = sorted((board.runs[key] for key in keys), key=lambda run: (run.created, run.key), reverse=True)
    parts = tuple(_part(board, one, slug, rows[one.name]) for one in board.benchmarks if rows[one.name])
    return ModelPage(board.models[slug], parts, tuple(runs))


def _rows(benchmark: BenchmarkBoard, slug: str) -> Iterator[_Row]:
    for table in benchmark.tables:
        yield from (_Row(table, row, ()) for row in table.rows if row.model == slug)
        yield from (_Row(table, one.row, one.reasons) for one in table.apart if one.row.model == slug)


def _part(board: Board, benchmark: BenchmarkBoard, slug: str, rows: Sequence[_Row]) -> Part:
    ranked = [one for one in rows if not one.row.blind and not one.reasons]
    others = [one for one in rows if one.row.blind or one.reasons]
    first = {one.row.runs: place for place, one in reversed(list(enumerate(others)))}
    apart = sorted(others, key=lambda one: (one.row.blind, first[one.row.runs]))
    return Part(
        benchmark=benchmark,
        trained=str(board.models[slug].trained.get(benchmark.name, "unknown")),
        places=tuple(_places(benchmark, slug)),
        matrices=tuple(_matrices(ranked)),
        apart=tuple(_matrices(apart)),
        letters=tuple(one for one in benchmark.letters if one.model == slug),
        timelines=tuple(one for one in benchmark.timelines if one.model == slug),
    )


def _places(benchmark: BenchmarkBoard, slug: str) -> Iterator[Place]:
    for ranking in benchmark.rankings:
        column = ranking.column
        rows = [row for row in benchmark.tables[0].rows if not row.blind and column.key in row.cells]
        scale = scale_of(column, [row.cells[column.key] for row in rows])
        for row in rows:
            if row.model == slug:
                cell = cell_view(column, row.cells[column.key], scale)
                rank, group = rank_cell(ranking, slug)
                yield Place(column_view(column), cell, rank, group, len(ranking.ranked))


def _matrices(rows: Iterable[_Row]) -> Iterator[Matrix]:
    """Tables one after the other that break the same metrics down by the same groups make one matrix."""
    for (_, blind, parts), bundle in groupby(rows, key=lambda one: (one.row.runs, one.row.blind, one.parts)):
        members = list(bundle)
        cells = {column.key: (column, one.row) for one in members for column in one.columns}
        columns = [column for column, _ in cells.values()]
        reasons = tuple(dict.fromkeys(reason for one in members for reason in one.reasons))
        across = {(one.task, one.metric) for one in columns}
        if parts is not None and len(across) > 1 and len({one.group for one in columns}) > 1:
            row = BoardRow(model="", cells={key: it.cells[key] for key, (_, it) in cells.items()}, runs=())
            yield _grid(_common_title([one.table.title for one in members]), columns, row, blind, reasons)
        else:
            for one in members:
                yield Matrix(one.table.title, (), tuple(_lines(one.columns, one.row)), blind, one.reasons)


def _grid(title: str, columns: Sequence[BoardColumn], row: BoardRow, blind: bool, reasons: tuple[str, ...]) -> Matrix:
    places = {(one.task, one.metric, one.group): one for one in columns}
    firsts = list({(one.task, one.metric): one for one in columns if one.group is not None}.values())
    headings = tuple(ColumnView(one.key, told_apart(one, firsts), unit=UNIT_LABELS[one.unit]) for one in firsts)
    rows = []
    groups = {one.group: one.label if one.group is None else one.group for one in columns}
    for group, label in sorted(groups.items(), key=lambda one: (one[0] is None, one[1])):
        held = [places.get((one.task, one.metric, group)) for one in firsts]
        cells = tuple(cell_view(one, row.cells[one.key]) if one else CellView("", reason="no items") for one in held)
        rows.append(ScoreRow(label, "", cells))
    return Matrix(title, headings, tuple(rows), blind, reasons)


def _common_title(titles: Sequence[str]) -> str:
    """The words with which all titles begin, or the first title."""
    words: list[str] = []
    for at_place in zip(*(title.split() for title in titles), strict=False):
        if len(set(at_place)) > 1:
            break
        words.append(at_place[0])
    return " ".join(words).rstrip(",;: ") or titles[0]


def _lines(columns: Sequence[BoardColumn], row: BoardRow) -> Iterator[ScoreRow]:
    subs = subtitles(columns)
    for column in columns:
        view = column_view(column, subs.get(column.key, ""))
        yield ScoreRow(view.label, " ".join((view.sub, view.unit)), (cell_view(column, row.cells[column.key]),))

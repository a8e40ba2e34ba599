"""The tables of a model's page: a line for each score, or a matrix of groups by tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..schema.board import BenchmarkBoard, Board
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardColumn, BoardRow, Cell
from .tables import ColumnView, leading_words, subtitles, why_none


@dataclass(frozen=True)
class ModelTable:
    """A table of one model, with a line for each of its ``columns``.

    With ``headings``, one for each task and metric, it is a matrix: ``lines`` have the label of a
    group, and by heading its column, None if that has no items of the group.
    """

    title: str
    row: BoardRow
    columns: Sequence[BoardColumn]
    headings: Sequence[ColumnView] = ()
    lines: Sequence[tuple[str, Sequence[BoardColumn | None]]] = ()

    def has_value(self, columns: Sequence[BoardColumn | None]) -> bool:
        """Whether the model has a score in one of the columns; pages fold lines without any."""
        return any(
            column is not None and self.row.cells[column.key].value is not None
            for column in columns
        )

    def why_none(self, columns: Sequence[BoardColumn | None]) -> str:
        """Why there is no score in any of the columns: the distinct reasons."""
        cells = [self.row.cells[column.key] for column in columns if column is not None]
        return why_none(cells) or "no items"


@dataclass(frozen=True)
class HeadlinePlace:
    """A model's score in a headline column, with the ranking by that column."""

    view: ColumnView
    ranking: Ranking
    cell: Cell


@dataclass(frozen=True)
class ModelResults:
    """A model's results on one benchmark.

    ``apart`` are the tables that are not comparable; ``runs`` are keys of `Board.runs`.
    """

    benchmark: BenchmarkBoard
    places: list[HeadlinePlace]
    tables: list[ModelTable]
    apart: list[ModelTable]
    runs: set[str]


def model_parts(board: Board, slug: str) -> list[ModelResults]:
    """The results of the model ``slug``, for each benchmark that has any."""
    parts = []
    for benchmark in board.benchmarks:
        tables = _tables_of_model(benchmark, slug)
        if tables:
            parts.append(_results(benchmark, slug, tables))
    return parts


def _results(benchmark: BenchmarkBoard, slug: str, tables: Sequence[ModelTable]) -> ModelResults:
    """The model's ``tables`` on a benchmark as its page shows them."""
    comparable = [table for table in tables if not table.row.reasons]
    apart = [table for table in tables if table.row.reasons]
    runs: set[str] = set()
    for table in tables:
        runs.update(table.row.runs)
    return ModelResults(
        benchmark=benchmark,
        places=_headline_places(benchmark, slug),
        tables=list(_joined(comparable)),
        apart=list(_joined(_by_runs(apart))),
        runs=runs,
    )


def _tables_of_model(benchmark: BenchmarkBoard, slug: str) -> list[ModelTable]:
    """A table for each row of the model, with the columns that the row has cells in."""
    tables = []
    for table in benchmark.tables:
        for row in table.every_row:
            if row.model == slug:
                columns = [column for column in table.columns if column.key in row.cells]
                tables.append(ModelTable(table.title, row, columns))
    return tables


def _headline_places(benchmark: BenchmarkBoard, slug: str) -> list[HeadlinePlace]:
    """The model's places in the rankings that have a score of it."""
    headline_rows = benchmark.tables[0].rows
    places = []
    for ranking in benchmark.rankings:
        for row in headline_rows:
            cell = row.cells.get(ranking.column.key)
            if row.model == slug and cell is not None:
                view = ColumnView(ranking.column, drawn=headline_rows)
                places.append(HeadlinePlace(view, ranking, cell))
    return places


def _by_runs(tables: Sequence[ModelTable]) -> list[ModelTable]:
    """Tables of the same runs side by side, blind ones last, so that `_joined` can join them."""
    runs_in_order = [table.row.runs for table in tables]

    def order(table: ModelTable) -> tuple[bool, int]:
        return table.row.blind, runs_in_order.index(table.row.runs)

    return sorted(tables, key=order)


def _joined(tables: Iterable[ModelTable]) -> Iterator[ModelTable]:
    """The tables, with consecutive tables of one breakdown joined into a matrix."""
    for kind, bundle in groupby(tables, key=_TableKind.of):
        members = list(bundle)
        matrix = _matrix(members) if kind.breakdown else None
        if matrix is None:
            yield from members
        else:
            yield matrix


@dataclass(frozen=True)
class _TableKind:
    """What tables that make one matrix have in common.

    ``breakdown`` is empty for a table that is not of one breakdown's groups.
    """

    runs: tuple[str, ...]
    blind: bool
    breakdown: str
    metrics: frozenset[str]

    @classmethod
    def of(cls, table: ModelTable) -> _TableKind:
        """The kind of a table; one of groups may end with a column of all items."""
        runs, blind = tuple(table.row.runs), table.row.blind
        breakdowns = {column.breakdown for column in table.columns if column.breakdown is not None}
        metrics = frozenset(column.metric for column in table.columns)
        grouped = {column.metric for column in table.columns if column.group is not None}
        if len(breakdowns) != 1 or metrics != grouped:
            return cls(runs, blind, "", frozenset())
        return cls(runs, blind, breakdowns.pop(), metrics)


def _matrix(members: Sequence[ModelTable]) -> ModelTable | None:
    """The tables as one, with a line for each group and a column for each task and metric.

    None if it would have only one line or one column.
    """
    columns: dict[tuple[str, str, str | None], BoardColumn] = {}
    cells: dict[str, Cell] = {}
    reasons: dict[str, None] = {}
    for member in members:
        for column in member.columns:
            columns[column.task, column.metric, column.group] = column
        cells |= member.row.cells
        reasons |= dict.fromkeys(member.row.reasons)

    head_by_score: dict[tuple[str, str], BoardColumn] = {}
    label_by_group: dict[str | None, str] = {}
    for (task, metric, group), column in columns.items():
        if group is None:
            label_by_group[group] = column.label
        else:
            label_by_group[group] = group
            head_by_score[task, metric] = column
    heads = list(head_by_score.values())
    if len(heads) < 2 or len(label_by_group) < 2:
        return None

    row = members[0].row.model_copy(update={"cells": cells, "reasons": tuple(reasons)})
    headings = _matrix_headings(heads, columns.values(), row)
    lines = []
    # all items come last
    for group, label in sorted(label_by_group.items(), key=lambda line: (line[0] is None, line[1])):
        line = [columns.get((head.task, head.metric, group)) for head in heads]
        lines.append((label, line))
    return ModelTable(_shared_title(members), row, (), headings, lines)


def _matrix_headings(
    heads: Sequence[BoardColumn],
    columns: Iterable[BoardColumn],
    row: BoardRow,
) -> list[ColumnView]:
    """The headings of a matrix; the judge of each is that of all its groups."""
    cells_by_score: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for column in columns:
        cells_by_score[column.task, column.metric].append(row.cells[column.key])
    # without labels, subtitles tell all columns apart
    subs = subtitles([head.model_copy(update={"label": ""}) for head in heads])
    headings = []
    for head in heads:
        cells = cells_by_score[head.task, head.metric]
        judged = [row.model_copy(update={"cells": {head.key: cell}}) for cell in cells]
        headings.append(ColumnView(head, judged=judged, sub=subs[head.key]))
    return headings


def _shared_title(tables: Sequence[ModelTable]) -> str:
    """The words that all titles begin with; the first title if there are none."""
    first = tables[0].title
    count = leading_words([table.title.split(" ") for table in tables])
    shared = " ".join(first.split(" ")[:count])
    return shared.rstrip(",;: ") or first

"""A model's page: its ranks, and for each benchmark its scores as lists, or as matrices of groups by tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from ..board.board import Board, BoardColumn, BoardRow, BoardTable, Cell
from ..board.numbers import UNIT_LABELS
from .tables import ColumnView, column_view, distinguishing, leading_words, shared_judge, subtitles

Line: TypeAlias = tuple[str, str, list[tuple[ColumnView, Cell | None]]]
"""Label, what distinguishes it, and cells: a column of the benchmark's table or, in a matrix, a group with one cell for
each heading, None if that has no items of the group."""


class Matrix(NamedTuple):
    """A table of one model; without ``headings`` each line is one score."""

    title: str
    headings: Sequence[ColumnView]
    rows: Sequence[Line]
    blind: bool
    reasons: Sequence[str]


class _Row(NamedTuple):
    """The model's row of one table, and the columns it has."""

    table: BoardTable
    row: BoardRow
    reasons: Sequence[str]
    columns: Sequence[BoardColumn]


def model_parts(board: Board, slug: str) -> list[dict[str, Any]]:
    """The benchmarks that have results of the model ``slug``.

    Each has its ``benchmark``, ``places`` (a headline column, its ranking, and the model's score), ``matrices``, those
    that are not comparable as ``apart``, and in ``runs`` keys of `Board.runs`.
    """
    parts = []
    for benchmark in board.benchmarks:
        rows = [
            _Row(table, row, reasons, [column for column in table.columns if column.key in row.cells])
            for table in benchmark.tables
            for row, reasons in (*((row, ()) for row in table.rows), *((one.row, one.reasons) for one in table.apart))
            if row.model == slug
        ]
        if not rows:
            continue
        others = [one for one in rows if one.reasons]
        first = {one.row.runs: place for place, one in reversed(list(enumerate(others)))}
        others.sort(key=lambda one: (one.row.blind, first[one.row.runs]))
        first_rows = benchmark.tables[0].rows
        places = [
            (column_view(ranking.column, drawn=first_rows), ranking, row.cells[ranking.column.key])
            for ranking in benchmark.rankings
            for row in first_rows
            if row.model == slug and ranking.column.key in row.cells
        ]
        parts.append(
            {
                "benchmark": benchmark,
                "places": places,
                "matrices": [*_matrices(one for one in rows if not one.reasons)],
                "apart": [*_matrices(others)],
                "runs": {key for one in rows for key in one.row.runs},
            }
        )
    return parts


def _breakdown(one: _Row) -> tuple[str, frozenset[str]] | None:
    """Breakdown and metrics of a table of one breakdown's groups, which may end with all items; else None."""
    breakdowns = {column.breakdown for column in one.columns} - {None}
    grouped = {column.metric for column in one.columns if column.group is not None}
    if len(breakdowns) != 1 or not grouped >= {column.metric for column in one.columns}:
        return None
    return str(breakdowns.pop()), frozenset(grouped)


def _matrices(rows: Iterable[_Row]) -> Iterator[Matrix]:
    """Consecutive tables that break the same metrics down by the same groups make one matrix: a heading for each task
    and metric, a row for each group."""
    for (_, blind, breakdown), bundle in groupby(rows, key=lambda one: (one.row.runs, one.row.blind, _breakdown(one))):
        members = list(bundle)
        columns = {(one.task, one.metric, one.group): one for member in members for one in member.columns}
        groups = {group: one.label if group is None else group for (_, _, group), one in columns.items()}
        across = {(one.task, one.metric) for one in columns.values()}
        lines: list[Line] = []
        if breakdown is None or len(across) < 2 or len(groups) < 2:
            for one in members:
                subs, lines = subtitles(one.columns), []
                for column in one.columns:
                    sub = f"{subs[column.key]} {UNIT_LABELS[column.unit]}"
                    lines.append((column.label, sub, [(ColumnView(column), one.row.cells[column.key])]))
                yield Matrix(one.table.title, (), lines, blind, one.reasons)
            continue
        titles = [one.table.title for one in members]
        reasons = list(dict.fromkeys(reason for one in members for reason in one.reasons))
        cells = {key: cell for one in members for key, cell in one.row.cells.items()}
        firsts = list({(one.task, one.metric): one for one in columns.values() if one.group is not None}.values())
        headings = []
        for head in firsts:
            same = [cells[one.key] for one in columns.values() if (one.task, one.metric) == (head.task, head.metric)]
            headings.append(ColumnView(head, sub=distinguishing(head, firsts), judge=shared_judge(same)))
        for group, label in sorted(groups.items(), key=lambda one: (one[0] is None, one[1])):
            in_row = [columns.get((head.task, head.metric, group)) for head in firsts]
            scores = [None if one is None else cells[one.key] for one in in_row]
            lines.append((label, "", list(zip(headings, scores, strict=True))))
        yield Matrix(leading_words(titles, " ").rstrip(",;: ") or titles[0], headings, lines, blind, reasons)

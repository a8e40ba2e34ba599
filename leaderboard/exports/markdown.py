"""Markdown: one file a table, for a README or a model card."""

from __future__ import annotations

import re
from collections.abc import Iterator

from medtasks.text import one_line

from ..board import BenchmarkBoard, Board, BoardColumn, BoardRow, BoardTable, Cell, Published
from .numbers import UNITS, direction, rounding_note, shown, shown_interval

__all__ = ["as_markdown", "escaped"]

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")


def escaped(text: str) -> str:
    r"""``text`` as plain text on one line of a table: no markup, no HTML, no links.

    >>> print(escaped("a|b <i>x_y</i>"))
    a\|b \<i\>x\_y\</i\>
    """
    return _LINK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", one_line(text)))


def as_markdown(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> str:
    """The table with its note, then the rows that are set apart, with their reasons, and the published ones."""
    return "\n".join(_lines(board, benchmark, table)) + "\n"


def _lines(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> Iterator[str]:
    yield f"# {escaped(benchmark.title)}: {escaped(table.title)}"
    yield ""
    if board.demonstration:
        yield "**Miniature data: a demonstration, not a benchmark result.**"
        yield ""
    if table.note:
        yield escaped(table.note)
        yield ""
    yield rounding_note(board.confidence)
    yield ""
    yield from _head("model", table)
    for row in table.rows:
        yield _line(_name(board, row), [_cell(row.cells.get(one.key), one) for one in table.columns])
    if not table.rows:
        yield _line("no comparable result", ["" for _ in table.columns])
    if table.apart:
        yield from ("", "## Set apart: not comparable with the rows above", "")
        yield from _head("model", table, "why")
        for apart in table.apart:
            cells = [_cell(apart.row.cells.get(one.key), one) for one in table.columns]
            yield _line(_name(board, apart.row), [*cells, escaped("; ".join(apart.reasons))])
    published = [row for row in benchmark.published if _of(row, table)]
    if published:
        yield from ("", "## Published, not re-run", "")
        yield from _head("model", table, "source")
        for one in published:
            yield _line(escaped(one.model), [*_figures(one, table), escaped(f"{one.paper}, {one.source}")])


def _head(first: str, table: BoardTable, *more: str) -> Iterator[str]:
    said = [", ".join(filter(None, (UNITS[one.unit], direction(one)))) for one in table.columns]
    labels = [f"{escaped(one.label)} ({words})" for one, words in zip(table.columns, said, strict=True)]
    yield _line(first, [*labels, *more])
    yield f"|---|{'---:|' * len(table.columns)}{'---|' * len(more)}"


def _line(first: str, cells: list[str]) -> str:
    return f"| {' | '.join([first, *cells])} |"


def _name(board: Board, row: BoardRow) -> str:
    name = board.models[row.model].name if row.model in board.models else row.model
    return escaped(name) + (" (blind)" if row.blind else "")


def _cell(cell: Cell | None, column: BoardColumn) -> str:
    """The number with its interval; why there is none; empty where the model was not run."""
    if cell is None:
        return ""
    if cell.value is None:
        return f"no value: {escaped(cell.reason or 'no reason given')}"
    ends = shown_interval(cell, column.unit)
    incomplete = " (incomplete)" if cell.incomplete else ""
    return f"{shown(cell.value, column.unit)}{f' [{ends}]' if ends else ''}{incomplete}"


def _of(row: Published, table: BoardTable) -> bool:
    keys = {column.key for column in table.columns}
    return any(cell.column in keys and cell.value is not None for cell in row.cells)


def _figures(row: Published, table: BoardTable) -> list[str]:
    values = {cell.column: cell.value for cell in row.cells}
    found = [(values.get(column.key), column.unit) for column in table.columns]
    return ["" if value is None else str(shown(value, unit)) for value, unit in found]

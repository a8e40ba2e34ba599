r"""LaTeX: tables for a paper, with ``booktabs``; the best value is bold, the second underlined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from medtasks.text import one_line

from ..board import BenchmarkBoard, Board, BoardColumn, BoardRow, BoardTable, Cell, Published
from .comparable import places
from .names import safe_name
from .numbers import UNITS, direction, rounding_note, shown, shown_interval

__all__ = ["MOST_COLUMNS", "as_latex", "escaped"]

MOST_COLUMNS = 6
"""Columns of scores in one table; what is wider becomes several tables."""

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\char34{}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "…": r"\ldots{}",
}  # fmt: skip
_LIGATURE = re.compile(r"([-',])(?=\1)")
_EMPHASES = {1: r"\textbf{%s}", 2: r"\underline{%s}"}


def escaped(text: str) -> str:
    r"""``text`` as LaTeX that prints it and does nothing else; brackets are shielded, for ``\\`` takes them.

    >>> print(escaped("50 % of $x_1"))
    50 \% of \$x\_1
    """
    return _LIGATURE.sub(r"\1{}", "".join(_ESCAPES.get(letter, letter) for letter in one_line(text)))


def as_latex(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> str:
    """The table's comparable rows, then the published ones below a rule; rows set apart are named in comments.

    Only comparable values compete for bold and underline (:func:`medtasks.leaderboard.exports.comparable.places`).
    Numbers that are printed alike share a place.
    """
    return "\n".join(_lines(board, benchmark, table)) + "\n"


def _lines(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> Iterator[str]:
    yield _comment(f"{benchmark.title}: {table.title}; made by medtasks {board.medtasks}")
    yield r"% preamble: \usepackage{booktabs}; names in other scripts than Latin need LuaLaTeX or XeLaTeX"
    yield _comment(rounding_note(board.confidence))
    yield "% bold: best, underlined: second, as printed, among comparable values; published rows do not compete"
    for one in table.apart:
        yield _comment(f"left out, not comparable: {_name(board, one.row)}: {'; '.join(one.reasons)}")
    starts = range(0, max(len(table.columns), 1), MOST_COLUMNS)
    for number, start in enumerate(starts, start=1):
        part = "" if len(starts) == 1 else f"-{number}"
        of = "" if len(starts) == 1 else f" ({number} of {len(starts)})"
        yield from _table(board, benchmark, table, table.columns[start : start + MOST_COLUMNS], part, of)


def _table(
    board: Board,
    benchmark: BenchmarkBoard,
    table: BoardTable,
    columns: Sequence[BoardColumn],
    part: str,
    of: str,
) -> Iterator[str]:
    warning = " Miniature data: a demonstration, not a benchmark result." if board.demonstration else ""
    cells = [cell for row in table.rows for column in columns if (cell := row.cells.get(column.key)) is not None]
    star = " A star marks values over too few verdicts." if any(cell.incomplete for cell in cells) else ""
    note = f" {table.note}" if table.note else ""
    yield ""
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{escaped(f'{benchmark.title}: {table.title}{of}.{note}{star}{warning}')}}}"
    yield rf"\label{{tab:{safe_name(benchmark.name)}-{safe_name(table.name)}{part}}}"
    yield r"\small"
    yield rf"\begin{{tabular}}{{l{'r' * len(columns)}}}"
    yield r"\toprule"
    yield _row(["Model", *(_heading(column) for column in columns)])
    yield r"\midrule"
    best = [places(table, column) for column in columns]
    for number, row in enumerate(table.rows):
        line = [
            _cell(row.cells.get(column.key), column, found.get(number))
            for column, found in zip(columns, best, strict=True)
        ]
        yield _row([escaped(_name(board, row)), *line])
    published = [row for row in benchmark.published if any(_figures(row, columns))]
    if published:
        yield r"\midrule"
        yield rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\emph{{Published, not re-run}}}} \\"
        for one in published:
            yield _row([escaped(f"{one.model} ({one.source})"), *_figures(one, columns)])
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _comment(text: str) -> str:
    return f"% {one_line(text)}"


def _row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _heading(column: BoardColumn) -> str:
    arrow = r" $\uparrow$" if column.higher_is_better else r" $\downarrow$"
    unit = f"{UNITS[column.unit]}, {direction(column)}" if column.signed else UNITS[column.unit]
    return f"{escaped(column.label)} ({escaped(unit)}){'' if column.signed else arrow}"


def _name(board: Board, row: BoardRow) -> str:
    name = board.models[row.model].name if row.model in board.models else row.model
    return f"{name} (blind)" if row.blind else str(name)


def _cell(cell: Cell | None, column: BoardColumn, place: int | None) -> str:
    """The number with its interval; a dash where there is none."""
    if cell is None or cell.value is None:
        return "--"
    number = _EMPHASES.get(place or 0, "%s") % _number(shown(cell.value, column.unit))
    ends = shown_interval(cell, column.unit)
    interval = rf" {{\scriptsize [{', '.join(_number(end) for end in ends.split(', '))}]}}" if ends else ""
    return f"{number}{interval}{'*' if cell.incomplete else ''}"


def _number(text: str) -> str:
    return f"$-${text[1:]}" if text.startswith("-") else text


def _figures(row: Published, columns: Sequence[BoardColumn]) -> list[str]:
    """The published numbers under the columns; empty where not one of them is there."""
    values = {cell.column: cell.value for cell in row.cells}
    found = [(values.get(column.key), column.unit) for column in columns]
    if all(value is None for value, _ in found):
        return []
    return ["--" if value is None else _number(shown(value, unit)) for value, unit in found]

"""A board's table in LaTeX (``booktabs``), as several tables if it is wider or longer than a page.

The interval of a score is in a line of its own below the score. These lines are the argument of a
macro, so that a document can leave them out: ``\\newcommand{\\medtasksintervals}[1]{}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from medtasks.core.text import one_line

from ..schema.board import BenchmarkBoard, Board, BoardColumn, BoardRow, BoardTable, Cell, Published
from ..schema.numbers import UNITS, column_note, safe_name, shown, shown_interval, shown_name
from .export_templates import export_environment
from .latex_filters import LATEX_FILTERS, latex_escaped
from .latex_widths import SCRIPT, text_width
from .places import places
from .published import published_rows

PAGE_WIDTH = 345.0
"""Points: the text of the ``article`` class at 10 points; most others are wider."""
MOST_COLUMNS = 6
"""Score columns of one table."""
MOST_LINES = 34
"""Lines of one table without its head; a page of the ``article`` class has room for a few more."""
_FLOATS = 10
"""Tables in a row after which the page is cleared; LaTeX keeps a limited number of floats."""
_GAP = 8.0
"""Points between two columns (twice ``\\tabcolsep``)."""
_NAME = 108.0
"""Points of the column of names, in which longer names are broken."""
_HEADING = 42.0
"""Points after which a heading goes on in its next line."""
INTERVAL_MACRO = r"\providecommand{\medtasksintervals}[1]{#1}"
_EMPHASES = {1: r"\textbf{%s}", 2: r"\underline{%s}"}


@dataclass(frozen=True)
class LatexRow:
    """A line of numbers, and the line of intervals below it; no interval is an empty text."""

    name: str
    numbers: tuple[str, ...]
    intervals: tuple[str, ...] = ()
    name_lines: int = 1

    @property
    def lines(self) -> int:
        return self.name_lines + any(self.intervals)


@dataclass(frozen=True)
class PublishedRows:
    """The rows of one table of a paper, under one note of their source."""

    note: str
    rows: tuple[LatexRow, ...]
    note_lines: int


@dataclass(frozen=True)
class LatexPart:
    """What is printed as one table."""

    headings: tuple[str, ...]
    rows: tuple[LatexRow, ...]
    published: tuple[PublishedRows, ...]
    incomplete: bool
    name_width: float
    width: float


def as_latex(
    board: Board, benchmark: BenchmarkBoard, table: BoardTable, *, intervals: bool = True
) -> str:
    """The comparable rows, then the published ones below a rule; comments name all other rows.

    The best comparable value is bold, the second underlined (`places`). Without ``intervals`` there
    are numbers alone.
    """
    parts = [
        part
        for columns in _column_groups(board, benchmark, table, intervals)
        for part in _parts(board, benchmark, table, columns, intervals)
    ]
    return _ENVIRONMENT.get_template("table.tex.j2").render(
        board=board,
        benchmark=benchmark,
        table=table,
        label=f"{safe_name(benchmark.name)}-{safe_name(table.name)}",
        parts=parts,
        intervals=intervals,
        floats=_FLOATS,
    )


# --- what fits a page ---


def _column_groups(
    board: Board, benchmark: BenchmarkBoard, table: BoardTable, intervals: bool
) -> Iterator[tuple[BoardColumn, ...]]:
    """The columns, in groups that fit the width of a page; an empty group if there is no column."""
    start = _name_width(board, benchmark, table) + _GAP
    group: list[BoardColumn] = []
    width = start
    for column in table.columns:
        added = _GAP + _column_width(table, column, intervals)
        if group and (width + added > PAGE_WIDTH or len(group) == MOST_COLUMNS):
            yield tuple(group)
            group, width = [], start
        group.append(column)
        width += added
    yield tuple(group)


def _name_width(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> float:
    """The width in points of the column of names."""
    names = [shown_name(board, row.model, row.blind) for row in table.rows]
    names += [row.model for row, _ in published_rows(benchmark, table.columns)]
    return min(max(map(text_width, ("Model", *names))), _NAME)


def _column_width(table: BoardTable, column: BoardColumn, intervals: bool) -> float:
    """The width in points of the widest of heading, numbers and intervals."""
    widths = [text_width(line) for line in _heading_lines(column)]
    for row in table.rows:
        cell = row.cells.get(column.key)
        if cell is None or cell.value is None:
            continue
        widths.append(text_width(f"{shown(cell.value, column.unit)}*", bold=True))
        if intervals:
            widths.append(text_width(f"[{shown_interval(cell, column.unit)}]", SCRIPT))
    return max(widths)


def _parts(
    board: Board,
    benchmark: BenchmarkBoard,
    table: BoardTable,
    columns: Sequence[BoardColumn],
    intervals: bool,
) -> Iterator[LatexPart]:
    """The rows of these columns, in tables that are not longer than a page."""
    best = {column.key: places(table, column) for column in columns}
    rows = [
        _row(board, row, place, columns, best, intervals) for place, row in enumerate(table.rows)
    ]
    name_width = _name_width(board, benchmark, table)
    width = name_width + sum(_column_width(table, column, intervals) + _GAP for column in columns)
    published = _published_groups(benchmark, columns, width)
    headings = tuple(map(_latex_heading, columns))
    shown_keys = {column.key for column in columns}
    cells = [cell for row in table.rows for key, cell in row.cells.items() if key in shown_keys]
    incomplete = any(cell.incomplete for cell in cells)
    for some, papers in _pages(rows, published):
        yield LatexPart(headings, some, papers, incomplete, name_width, width)


_Page = tuple[tuple[LatexRow, ...], tuple[PublishedRows, ...]]


def _pages(rows: Sequence[LatexRow], published: Sequence[PublishedRows]) -> Iterator[_Page]:
    """Rows and published rows by table; the last table of rows goes on with published ones."""
    page: list[LatexRow] = []
    lines = 0
    for row in rows:
        if page and lines + row.lines > MOST_LINES:
            yield tuple(page), ()
            page, lines = [], 0
        page.append(row)
        lines += row.lines
    papers: list[PublishedRows] = []
    for group in published:
        kept: list[LatexRow] = []
        lines += 1 + group.note_lines  # after a rule
        for row in group.rows:
            if lines + row.lines > MOST_LINES and (page or papers or kept):
                if kept:
                    papers.append(replace(group, rows=tuple(kept)))
                yield tuple(page), tuple(papers)
                page, papers, kept, lines = [], [], [], 1 + group.note_lines
            kept.append(row)
            lines += row.lines
        papers.append(replace(group, rows=tuple(kept)))
    yield tuple(page), tuple(papers)


# --- rows and cells ---


def _row(
    board: Board,
    row: BoardRow,
    place: int,
    columns: Sequence[BoardColumn],
    best: dict[str, dict[int, int]],
    intervals: bool,
) -> LatexRow:
    name = shown_name(board, row.model, row.blind)
    cells = [(column, row.cells.get(column.key)) for column in columns]
    numbers = tuple(
        _latex_number(cell, column, best[column.key].get(place)) for column, cell in cells
    )
    ends = tuple(_latex_interval(cell, column) for column, cell in cells) if intervals else ()
    return LatexRow(_latex_name(name), numbers, ends, _wrapped(name, _NAME))


def _wrapped(text: str, width: float) -> int:
    """The lines of a text in a column of ``width`` points; a line ends early where no word fits."""
    return max(1, math.ceil(1.1 * text_width(text) / width)) if text_width(text) > width else 1


def _published_groups(
    benchmark: BenchmarkBoard, columns: Sequence[BoardColumn], width: float
) -> tuple[PublishedRows, ...]:
    groups = []
    by_source = groupby(
        published_rows(benchmark, columns), key=lambda entry: _source_note(entry[0])
    )
    for note, entries in by_source:
        rows = []
        for row, values in entries:
            numbers = tuple(_minus(value) or "--" for value in values)
            lines = _wrapped(row.model, _NAME)
            rows.append(LatexRow(_latex_name(row.model), numbers, name_lines=lines))
        groups.append(PublishedRows(note, tuple(rows), _wrapped(note, width)))
    return tuple(groups)


def _source_note(row: Published) -> str:
    """The paper's table, and where it was read if not there."""
    elsewhere = "" if row.source == "paper" else f" ({row.source})"
    return latex_escaped(f"Published, not re-run: {row.paper}, {row.table}{elsewhere}")


def _latex_name(name: str) -> str:
    """A name that may be broken after separators."""
    escaped = latex_escaped(name)
    for separator in ("/", "-", r"\_"):
        escaped = escaped.replace(separator, rf"{separator}\allowbreak{{}}")
    return escaped


def _heading_lines(column: BoardColumn) -> list[str]:
    """The heading in lines of limited width; the last one has the unit, and room for an arrow."""
    lines: list[str] = []
    for word in one_line(column.label).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer) <= _HEADING:
            lines[-1] = longer
        else:
            lines.append(word)
    note = column_note(column) if column.signed else UNITS[column.unit]
    return [*lines, f"({note}) ^"]


def _latex_heading(column: BoardColumn) -> str:
    *label, note = _heading_lines(column)
    arrow = r" $\uparrow$" if column.higher_is_better else r" $\downarrow$"
    unit = latex_escaped(note.removesuffix(" ^")) + arrow * (not column.signed)
    lines = r"\\".join([*map(latex_escaped, label), unit])
    return rf"\shortstack[r]{{{lines}}}"


def _latex_number(cell: Cell | None, column: BoardColumn, place: int | None) -> str:
    if cell is None or cell.value is None:
        return "--"
    number = _EMPHASES.get(place or 0, "%s") % _minus(shown(cell.value, column.unit))
    return f"{number}{'*' if cell.incomplete else ''}"


def _latex_interval(cell: Cell | None, column: BoardColumn) -> str:
    ends = "" if cell is None or cell.value is None else shown_interval(cell, column.unit)
    if not ends:
        return ""
    return rf"{{\scriptsize [{', '.join(map(_minus, ends.split(', ')))}]}}"


def _minus(text: str) -> str:
    return f"$-${text[1:]}" if text.startswith("-") else text


_ENVIRONMENT = export_environment(LATEX_FILTERS)
_ENVIRONMENT.globals.update(shown_name=shown_name, interval_macro=INTERVAL_MACRO)

"""How a board's table is split into LaTeX tables that fit a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import shown, shown_interval, shown_name
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable
from .latex_cells import (
    heading_lines,
    latex_heading,
    latex_interval,
    latex_minus,
    latex_name,
    latex_number,
    source_note,
)
from .latex_widths import SCRIPT, text_width
from .places import places
from .published import PublishedRow, published_rows

PAGE_WIDTH = 345.0
"""Points: the text of the ``article`` class at 10 points; most others are wider."""
MOST_COLUMNS = 6
"""Score columns of one table."""
MOST_LINES = 34
"""Lines of one table without its head; a page of the ``article`` class has room for a few more."""
_GAP = 8.0
"""Points between two columns (twice ``\\tabcolsep``)."""
_NAME_WIDTH = 108.0
"""Points of the column of names, in which longer names are broken."""
_WRAPPED_SHARE = 1.1
"""Width of a text in a narrow column, where a line ends early if no word fits, as a share of its
width on one line.
"""


@dataclass(frozen=True)
class LatexRow:
    """A line of numbers, and the line of intervals below it; no interval is an empty text."""

    name: str
    numbers: Sequence[str]
    intervals: Sequence[str] = ()
    name_lines: int = 1

    @property
    def lines(self) -> int:
        return self.name_lines + any(self.intervals)


@dataclass
class PublishedRows:
    """Rows of one table of a paper, under one note of their source, in so many lines."""

    note: str
    note_lines: int
    rows: list[LatexRow] = field(default_factory=list)


@dataclass(frozen=True)
class LatexPart:
    """What is printed as one table; ``incomplete`` is whether it has incomplete values."""

    headings: Sequence[str]
    rows: Sequence[LatexRow]
    published: Sequence[PublishedRows]
    incomplete: bool
    name_width: float
    width: float


@dataclass
class _Page:
    """The rows of one table while it is filled, and the number of their lines."""

    rows: list[LatexRow] = field(default_factory=list)
    published: list[PublishedRows] = field(default_factory=list)
    lines: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.rows and not any(group.rows for group in self.published)

    def has_room(self, row: LatexRow) -> bool:
        """Whether the row still fits the page."""
        return self.lines + row.lines <= MOST_LINES

    def add_row(self, row: LatexRow) -> None:
        self.rows.append(row)
        self.lines += row.lines

    def start_group(self, group: PublishedRows) -> None:
        """Begin with a paper's table, below a rule and its note."""
        self.published.append(PublishedRows(group.note, group.note_lines))
        self.lines += 1 + group.note_lines

    def add_published(self, row: LatexRow) -> None:
        self.published[-1].rows.append(row)
        self.lines += row.lines


@dataclass(frozen=True)
class TableLayout:
    """A board's table, and whether it is printed with intervals."""

    board: Board
    benchmark: BenchmarkBoard
    table: BoardTable
    has_intervals: bool

    def parts(self) -> Iterator[LatexPart]:
        """The tables to print: columns that fit the width of a page, rows that fit its height."""
        for columns in self._column_groups():
            yield from self._parts_with(columns)

    def _column_groups(self) -> Iterator[Sequence[BoardColumn]]:
        """The columns, in groups that fit the width of a page; an empty group if there is no
        column.
        """
        start = self._name_width() + _GAP
        group: list[BoardColumn] = []
        width = start
        for column in self.table.columns:
            added = _GAP + self._column_width(column)
            if group and (width + added > PAGE_WIDTH or len(group) == MOST_COLUMNS):
                yield group
                group = []
                width = start
            group.append(column)
            width += added
        yield group

    def _name_width(self) -> float:
        """The width in points of the column of names."""
        names = ["Model"]
        names += [shown_name(self.board, row.model, row.blind) for row in self.table.rows]
        for published in published_rows(self.benchmark, self.table.columns):
            names.append(published.source.model)
        widest = max(map(text_width, names))
        return min(widest, _NAME_WIDTH)

    def _column_width(self, column: BoardColumn) -> float:
        """The width in points of the widest of heading, numbers and intervals."""
        widths = [text_width(line) for line in heading_lines(column)]
        for row in self.table.rows:
            cell = row.cells.get(column.key)
            if cell is None or cell.value is None:
                continue
            widths.append(text_width(f"{shown(cell.value, column.unit)}*", bold=True))
            if self.has_intervals:
                widths.append(text_width(f"[{shown_interval(cell, column.unit)}]", SCRIPT))
        return max(widths)

    def _parts_with(self, columns: Sequence[BoardColumn]) -> Iterator[LatexPart]:
        """The rows of these columns, in tables that are not longer than a page."""
        name_width = self._name_width()
        width = name_width + sum(self._column_width(column) + _GAP for column in columns)
        headings = [latex_heading(column) for column in columns]
        is_incomplete = self._has_incomplete_values(columns)
        for page in _pages(self._rows(columns), self._published(columns, width)):
            published = [group for group in page.published if group.rows]
            yield LatexPart(headings, page.rows, published, is_incomplete, name_width, width)

    def _has_incomplete_values(self, columns: Sequence[BoardColumn]) -> bool:
        """Whether a comparable row has an incomplete value in one of the columns."""
        for row in self.table.rows:
            cells = [row.cells.get(column.key) for column in columns]
            if any(cell is not None and cell.incomplete for cell in cells):
                return True
        return False

    def _rows(self, columns: Sequence[BoardColumn]) -> list[LatexRow]:
        """The comparable rows."""
        place_in = {column.key: places(self.table, column) for column in columns}
        rows = []
        for number, row in enumerate(self.table.rows):
            row_places = {key: by_row.get(number) for key, by_row in place_in.items()}
            rows.append(self._row(row, columns, row_places))
        return rows

    def _row(
        self, row: BoardRow, columns: Sequence[BoardColumn], row_places: dict[str, int | None]
    ) -> LatexRow:
        """A comparable row; ``row_places`` are its places among the best, by column key."""
        name = shown_name(self.board, row.model, row.blind)
        numbers, intervals = [], []
        for column in columns:
            cell = row.cells.get(column.key)
            numbers.append(latex_number(cell, column, row_places[column.key]))
            if self.has_intervals:
                intervals.append(latex_interval(cell, column))
        return LatexRow(latex_name(name), numbers, intervals, _lines_of(name, _NAME_WIDTH))

    def _published(self, columns: Sequence[BoardColumn], width: float) -> list[PublishedRows]:
        """The published rows, by their paper's table."""
        groups = []
        rows = published_rows(self.benchmark, columns)
        for note, members in groupby(rows, key=_note_of):
            group = PublishedRows(note, _lines_of(note, width))
            for source, values in members:
                numbers = [latex_minus(value) or "--" for value in values]
                lines = _lines_of(source.model, _NAME_WIDTH)
                group.rows.append(LatexRow(latex_name(source.model), numbers, name_lines=lines))
            groups.append(group)
        return groups


def _pages(rows: Sequence[LatexRow], published: Sequence[PublishedRows]) -> Iterator[_Page]:
    """Rows and published rows by table; the last table of rows goes on with published ones."""
    page = _Page()
    for row in rows:
        if not page.is_empty and not page.has_room(row):
            yield page
            page = _Page()
        page.add_row(row)
    for group in published:
        page.start_group(group)
        for row in group.rows:
            if not page.is_empty and not page.has_room(row):
                yield page
                page = _Page()
                page.start_group(group)
            page.add_published(row)
    yield page


def _note_of(row: PublishedRow) -> str:
    return source_note(row.source)


def _lines_of(text: str, width: float) -> int:
    """The number of lines of a text in a column of ``width`` points."""
    whole = text_width(text)
    if whole <= width:
        return 1
    return max(1, math.ceil(_WRAPPED_SHARE * whole / width))

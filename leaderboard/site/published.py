"""Published figures as tables of their own: as printed, in our units, with every note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ..board import BenchmarkBoard, BoardColumn, Published, PublishedCell
from .cells import CellView
from .numbers import exact, number
from .tables import ColumnView, column_view

__all__ = ["PublishedRow", "PublishedTable", "published_tables"]


@dataclass(frozen=True)
class PublishedRow:
    """What a paper prints for one model; ``notes`` of row and cells are numbers of the table's notes."""

    row: Published
    cells: tuple[CellView, ...]
    notes: tuple[int, ...]


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper."""

    name: str
    title: str
    source: str
    paper: str
    judges: tuple[str, ...]
    columns: tuple[ColumnView, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...]


def published_tables(benchmark: BenchmarkBoard) -> tuple[PublishedTable, ...]:
    """The published rows of ``benchmark``, table by table, in the order of print."""
    tables: dict[tuple[str, str, str], list[Published]] = {}
    for row in benchmark.published:
        tables.setdefault((row.paper, row.table, row.source), []).append(row)
    known = {column.key: column for table in benchmark.tables for column in table.columns}
    return tuple(_table(f"published-{number}", rows, known) for number, rows in enumerate(tables.values(), 1))


def _table(name: str, rows: Sequence[Published], known: dict[str, BoardColumn]) -> PublishedTable:
    keys = list(dict.fromkeys(cell.column for row in rows for cell in row.cells))
    notes: dict[str, int] = {}

    def numbers(texts: Sequence[str]) -> tuple[int, ...]:
        return tuple(notes.setdefault(text, len(notes) + 1) for text in texts)

    views = []
    for row in rows:
        cells = {cell.column: cell for cell in row.cells}
        views.append(
            PublishedRow(
                row=row,
                notes=numbers(row.notes),
                cells=tuple(_cell(cells.get(key), known.get(key), numbers) for key in keys),
            )
        )
    first = rows[0]
    columns = tuple(
        column_view(known[key]) if key in known else ColumnView(f"c{place}", key) for place, key in enumerate(keys)
    )
    judges = tuple(dict.fromkeys(row.judge for row in rows if row.judge))
    return PublishedTable(name, first.table, first.source, first.paper, judges, columns, tuple(views), tuple(notes))


def _cell(
    cell: PublishedCell | None, column: BoardColumn | None, numbers: Callable[[Sequence[str]], tuple[int, ...]]
) -> CellView:
    """The figure in our unit, with what was printed where that reads otherwise; marks say what notes belong to it."""
    if cell is None:
        return CellView("", reason="not in this table")
    marks = tuple(str(one) for one in numbers(cell.notes))
    if not cell.rankable:
        marks = (*marks, "not comparable")
    if cell.value is None:
        return CellView("", notes=marks, reason=cell.printed or "cannot be read")
    if column is None:
        return CellView(cell.printed or f"{cell.value:g}", exact(cell.value), notes=marks)
    text = number(cell.value, column.unit)
    return CellView(
        text, exact(cell.value), "" if _says(cell.printed, text) else f"printed {cell.printed}", notes=marks
    )


def _says(printed: str | None, text: str) -> bool:
    """Whether ``printed`` is the number ``text``, trailing zeros aside."""
    try:
        return printed is None or Decimal(printed.strip(" %")) == Decimal(text.replace("−", "-"))
    except InvalidOperation:
        return False

"""Published figures as separate tables: in our units, beside the printed text, with all notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ..board.board import BenchmarkBoard, BoardColumn, Published, PublishedCell
from ..board.numbers import exact, number
from .cells import CellView, ColumnView, column_view


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper; ``first`` is its first row. Each row has its cells, and the numbers of its notes.

    ``not_comparable`` are the reasons why figures cannot be compared with ours, each with the columns it is about.
    """

    name: str
    first: Published
    judges: tuple[str, ...]
    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[Published, tuple[CellView, ...], tuple[int, ...]], ...]
    notes: tuple[str, ...]
    not_comparable: tuple[tuple[str, tuple[str, ...]], ...]


def published_tables(benchmark: BenchmarkBoard) -> list[PublishedTable]:
    """The published rows of ``benchmark``, table by table, in printed order."""
    tables: dict[tuple[str, str, str], list[Published]] = {}
    for row in benchmark.published:
        tables.setdefault((row.paper, row.table, row.source), []).append(row)
    known = {column.key: column for table in benchmark.tables for column in table.columns}
    return [_table(f"published-{number}", rows, known) for number, rows in enumerate(tables.values(), 1)]


def _table(name: str, rows: Sequence[Published], known: Mapping[str, BoardColumn]) -> PublishedTable:
    keys = list(dict.fromkeys(cell.column for row in rows for cell in row.cells))
    notes: dict[str, int] = {}
    for text in (text for row in rows for text in (*row.notes, *(note for cell in row.cells for note in cell.notes))):
        notes.setdefault(text, len(notes) + 1)
    views = []
    for row in rows:
        by_column = {cell.column: cell for cell in row.cells}
        cells = tuple(_cell(by_column.get(key), known.get(key), notes) for key in keys)
        views.append((row, cells, tuple(notes[text] for text in row.notes)))
    columns = tuple(
        column_view(known[key]) if key in known else ColumnView(f"c{place}", key) for place, key in enumerate(keys)
    )
    labels = dict(zip(keys, (column.label for column in columns), strict=True))
    reasons: dict[str, dict[str, None]] = {}
    for cell in (cell for row in rows for cell in row.cells if cell.why):
        reasons.setdefault(cell.why, {})[labels[cell.column]] = None
    return PublishedTable(
        name=name,
        first=rows[0],
        judges=tuple(dict.fromkeys(row.judge for row in rows if row.judge)),
        columns=columns,
        rows=tuple(views),
        notes=tuple(notes),
        not_comparable=tuple((why, tuple(of)) for why, of in reasons.items()),
    )


def _cell(cell: PublishedCell | None, column: BoardColumn | None, numbers: Mapping[str, int]) -> CellView:
    """The figure in our unit, with what was printed if that differs; marks are the numbers of its notes."""
    if cell is None:
        return CellView(reason="not in this table")
    marks = tuple(str(numbers[text]) for text in cell.notes)
    if not cell.rankable:
        marks = (*marks, "not comparable")
    if cell.value is None:
        return CellView(notes=marks, reason=cell.printed or "cannot be read")
    if column is None:
        return CellView(cell.printed or f"{cell.value:g}", exact(cell.value), notes=marks)
    text = number(cell.value, column.unit)
    printed = "" if _equal(cell.printed, text) else f"printed {cell.printed}"
    return CellView(text, exact(cell.value), printed, notes=marks)


def _equal(printed: str | None, text: str) -> bool:
    """Whether ``printed`` is the number ``text``, apart from trailing zeros."""
    try:
        return printed is None or Decimal(printed.strip(" %")) == Decimal(text.replace("−", "-"))
    except InvalidOperation:
        return False

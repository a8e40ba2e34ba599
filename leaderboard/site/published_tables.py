"""Tables of papers, as a benchmark's page shows them below its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ..schema.board import BenchmarkBoard
from ..schema.published_figures import Published
from ..schema.score_tables import BoardColumn


@dataclass
class PublishedTable:
    """A table of a paper, in printed order.

    ``columns`` are those of the board by key; None for figures that the board has no column for.
    ``notes`` are all notes, numbered from 1. ``not_comparable`` has the reasons why figures cannot
    be compared with ours, each with the columns it is about.
    """

    rows: list[dict[str, Published]]
    figures: list[Published]
    columns: dict[str, BoardColumn | None]
    notes: dict[str, int]
    not_comparable: dict[str, dict[str, None]]


def published_tables(benchmark: BenchmarkBoard) -> list[PublishedTable]:
    """The published rows of ``benchmark``, table by table."""
    rows_by_table: dict[tuple[str, str, str], list[dict[str, Published]]] = defaultdict(list)
    for row in benchmark.published_rows:
        first = next(iter(row.values()))
        rows_by_table[first.paper, first.table, first.source].append(row)
    board_columns: dict[str, BoardColumn] = {}
    for table in benchmark.tables:
        for column in table.columns:
            board_columns[column.key] = column
    return [_published_table(rows, board_columns) for rows in rows_by_table.values()]


def _published_table(
    rows: list[dict[str, Published]], board_columns: Mapping[str, BoardColumn]
) -> PublishedTable:
    """The published rows of one table, with numbered notes and reasons."""
    table = PublishedTable(rows, [], {}, {}, defaultdict(dict))
    for row in rows:
        table.figures.extend(row.values())
    for figure in table.figures:
        column = board_columns.get(figure.column)
        table.columns.setdefault(figure.column, column)
        if figure.why:
            label = figure.column if column is None else column.label
            table.not_comparable[figure.why][label] = None
        for note in (*figure.row_notes, *figure.notes):
            table.notes.setdefault(note, len(table.notes) + 1)
    return table


def is_printed_so(cell: Published, text: str) -> bool:
    """Whether the paper prints the number ``text``, apart from trailing zeros.

    >>> from types import SimpleNamespace
    >>> is_printed_so(SimpleNamespace(printed="41.20"), "41.2")
    True
    """
    if cell.printed is None:
        return True
    try:
        printed = Decimal(cell.printed.strip(" %"))
        return printed == Decimal(text.replace("−", "-"))
    except InvalidOperation:
        return False

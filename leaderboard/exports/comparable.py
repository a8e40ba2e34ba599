"""Which cells of a column compete for best and second: comparable ones alone, and as the reader sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

from ..board import BoardColumn, BoardTable, Cell
from .numbers import rounded

__all__ = ["places"]


def places(table: BoardTable, column: BoardColumn) -> dict[int, int]:
    """1 (best) or 2 (second) by the number of the row in ``table.rows``; rows that show equal numbers share a place.

    Rows that were asked blind, values over too few verdicts, and values of another signature than most of the column
    do not compete, and nobody does in a signed column: its means are no order of models.
    """
    if column.signed:
        return {}
    cells = {number: cell for number, row in enumerate(table.rows) if (cell := row.cells.get(column.key)) is not None}
    competing = {number: cell for number, cell in cells.items() if _competes(cell) and not table.rows[number].blind}
    main = _main_signature(competing)
    shown = {
        number: rounded(cell.value, column.unit)
        for number, cell in competing.items()
        if cell.value is not None and cell.signature == main
    }
    ordered: list[Decimal] = sorted(set(shown.values()), reverse=bool(column.higher_is_better))
    found = {number: ordered.index(value) + 1 for number, value in shown.items()}
    return {number: place for number, place in found.items() if place <= 2}


def _competes(cell: Cell) -> bool:
    return cell.value is not None and not cell.incomplete


def _main_signature(cells: Mapping[int, Cell]) -> str | None:
    counts = Counter(str(cell.signature) for cell in cells.values())
    return min(counts, key=lambda name: (-counts[name], name), default=None)

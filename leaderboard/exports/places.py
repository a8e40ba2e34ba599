"""Which values of a table are printed as the best and the second."""

from __future__ import annotations

from ..schema.board import BoardColumn, BoardTable
from ..schema.numbers import rounded


def places(table: BoardTable, column: BoardColumn) -> dict[int, int]:
    """1 (best) or 2 (second) by index in ``table.rows``; equal printed numbers share a place.

    Incomplete values do not compete. Signed columns have no best value.
    """
    if column.signed:
        return {}
    cells = {number: row.cells.get(column.key) for number, row in enumerate(table.rows)}
    printed = {
        number: rounded(cell.value, column.unit)
        for number, cell in cells.items()
        if cell is not None and cell.value is not None and not cell.incomplete
    }
    ordered = sorted(set(printed.values()), reverse=column.higher_is_better)[:2]
    return {
        number: ordered.index(value) + 1 for number, value in printed.items() if value in ordered
    }

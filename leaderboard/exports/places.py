"""Which values of a table are printed as the best and the second."""

from __future__ import annotations

from decimal import Decimal

from ..schema.numbers import rounded
from ..schema.score_tables import BoardColumn, BoardTable


def places(table: BoardTable, column: BoardColumn) -> dict[int, int]:
    """1 (best) or 2 (second) by index in ``table.rows``; equal printed numbers share a place.

    Incomplete values do not compete. Signed columns and counts have no best value, nor has a table
    whose rows are not compared.
    """
    if not column.has_best or not table.compared:
        return {}
    printed: dict[int, Decimal] = {}
    for number, row in enumerate(table.rows):
        cell = row.cells.get(column.key)
        if cell is not None and cell.value is not None and not cell.incomplete:
            printed[number] = rounded(cell.value, column.unit)
    best_two = sorted(set(printed.values()), reverse=column.higher_is_better)[:2]
    place_of = {value: place for place, value in enumerate(best_two, start=1)}
    return {number: place_of[value] for number, value in printed.items() if value in place_of}

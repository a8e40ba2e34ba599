"""The table of what runs used."""

from __future__ import annotations

from collections.abc import Sequence

from ..board import ModelUsage, RunFacts
from ..numbers import exact
from ..usage import amount, measured
from .cells import CellView
from .tables import ColumnView


def usage_table(rows: Sequence[ModelUsage | RunFacts]) -> tuple[list[ColumnView], list[list[CellView]]]:
    """Columns, and the cells of each row; columns that no row has are left out."""
    found = measured([(row.usage, row.cost) for row in rows])
    columns = [ColumnView(f"usage.{one.key}", one.label, unit=one.unit) for one, _ in found]
    cells = [
        [
            CellView(
                amount(values[place]), exact(values[place]), reason="" if values[place] is not None else "not counted"
            )
            for _, values in found
        ]
        for place in range(len(rows))
    ]
    return columns, cells

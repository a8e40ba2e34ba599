"""The published figures as printed, and what their printing leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from medtasks.leaderboard.board.reference import (
    ReferenceCell,
    ReferenceRow,
    load_reference,
)
from scipy.optimize import linprog

Cell = tuple[str, str, str]  # table, model's label, column


def printed(benchmark: str) -> dict[Cell, Decimal | None]:
    return {
        (row.table, row.label, cell.column): None if cell.printed is None else Decimal(cell.printed)
        for row, cell in cells(benchmark)
    }


def cells(benchmark: str) -> list[tuple[ReferenceRow, ReferenceCell]]:
    return [(row, cell) for row in load_reference(benchmark).rows for cell in row.cells]


def read(figures: dict[Cell, Decimal | None], *cell: str) -> Decimal:
    """A figure that must be readable."""
    table, label, column = cell
    figure = figures[table, label, column]
    assert figure is not None, cell
    return figure


def half_unit(*figures: Decimal) -> float:
    """Half a unit of the last digit, which these figures share: what rounding may have taken from each."""
    (exponent,) = {int(figure.as_tuple().exponent) for figure in figures}
    return float(5 * Decimal(10) ** (exponent - 1))


def misfit(parts: Sequence[Sequence[float]], wholes: Sequence[float]) -> float:
    """The least error, of the worst row, with which one set of shares of the parts makes the wholes of all rows."""
    matrix, target = np.array(parts), np.array(wholes)
    slack = -np.ones((len(target), 1))
    found = linprog(
        [*np.zeros(matrix.shape[1]), 1],
        A_ub=np.vstack([np.hstack([matrix, slack]), np.hstack([-matrix, slack])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=[[*np.ones(matrix.shape[1]), 0]],
        b_eq=[1],
        bounds=[(0, None)] * (matrix.shape[1] + 1),
    )
    assert found.success
    return float(found.x[-1])


def fewest_rows(figures: Sequence[Decimal], whole: int) -> int:
    """The least number of rows of which every figure, a share of ``whole``, is a whole number of right answers."""
    shares = np.array([float(figure) / whole for figure in figures])
    for rows in range(1, 1000):
        if np.all(np.abs(np.round(shares * rows) / rows - shares) <= half_unit(*figures) / whole + 1e-12):
            return rows
    raise AssertionError(f"{figures} are shares of no common number of rows")

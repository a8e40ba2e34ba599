"""Numbers for people: one rule for pages of paper, Markdown and figures. Machine-readable exports keep all digits."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from ..board import BoardColumn, Cell, Unit

__all__ = ["UNITS", "direction", "rounded", "rounding_note", "shown", "shown_interval"]

UNITS: dict[str, str] = {"fraction": "%", "points": "points, 0 to 100", "seconds": "s", "score": "score"}
"""What a number of each unit is, once it is `shown`."""

_DIGITS = {"fraction": 1, "points": 1, "seconds": 1, "score": 3}


def rounded(value: float, unit: Unit) -> Decimal:
    """``value`` as it is shown: fractions times 100 and points to one decimal, seconds to one, scores to three.

    Halves are rounded away from zero, on the decimal number that ``repr`` gives; there is no -0.0.
    """
    number = Decimal(repr(float(value))) * (100 if unit == "fraction" else 1)
    step = Decimal(1).scaleb(-_DIGITS[unit])
    return number.quantize(step, rounding=ROUND_HALF_UP) + Decimal(0)


def shown(value: float, unit: Unit) -> str:
    """``value`` as text, without its unit.

    >>> shown(0.6125, "fraction"), shown(41.25, "points"), shown(-0.04, "seconds")
    ('61.3', '41.3', '0.0')
    """
    return f"{rounded(value, unit):f}"


def shown_interval(cell: Cell, unit: Unit) -> str:
    """``58.1, 64.4``; empty where the cell has no interval."""
    if cell.low is None or cell.high is None:
        return ""
    return f"{shown(cell.low, unit)}, {shown(cell.high, unit)}"


def direction(column: BoardColumn) -> str:
    """What a reader must know to tell a good number of the column from a bad one; empty where more is better."""
    if column.signed:
        return "0 is best"
    return "" if column.higher_is_better else "lower is better"


def rounding_note(confidence: float) -> str:
    """How numbers are given, in a sentence."""
    return (
        f"Fractions are given in per cent, all numbers to one decimal (scores to three); brackets hold "
        f"{100 * confidence:g} % cluster-bootstrap intervals."
    )

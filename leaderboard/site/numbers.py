"""Numbers as the pages print them: rounded as in the exports, with true minus signs."""

from __future__ import annotations

from ..board import Unit
from ..exports.numbers import shown

MINUS = "−"

UNIT_LABELS: dict[Unit, str] = {"fraction": "%", "points": "points", "seconds": "s", "score": "score"}
"""Units, short enough for a heading."""


def number(value: float, unit: Unit) -> str:
    """``value`` in its unit, with a true minus sign.

    >>> number(0.6125, "fraction"), number(-1.25, "seconds")
    ('61.3', '−1.3')
    """
    return shown(value, unit).replace("-", MINUS)


def difference(value: float, unit: Unit) -> str:
    """As `number`, with a plus sign if it is greater than zero.

    >>> difference(0.021, "fraction"), difference(0.0, "points")
    ('+2.1', '0.0')
    """
    text = number(value, unit)
    return text if text.startswith(MINUS) or not text.strip("0.") else f"+{text}"


def interval(low: float | None, high: float | None, unit: Unit) -> str:
    """Both ends, or nothing without an interval; separated by ``to`` if one is negative.

    >>> interval(0.5, 0.62, "fraction"), interval(-1.0, 2.0, "seconds"), interval(None, None, "score")
    ('50.0–62.0', '−1.0 to 2.0', '')
    """
    if low is None or high is None:
        return ""
    ends = number(low, unit), number(high, unit)
    return (" to " if MINUS in "".join(ends) else "–").join(ends)


def exact(value: float | None) -> str:
    """Six significant digits in the board's own unit, for sorting."""
    return "" if value is None else f"{value:.6g}"

"""Units of scores, and numbers, names and keys as pages, exports and figures show them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from medtasks.catalog.board_layout import Column
from medtasks.core.files import short_hash
from medtasks.metrics.facts import Unit

from .board import Board
from .score_tables import BoardColumn, Cell

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_SAFE_PART = re.compile(r"[A-Za-z0-9_-]{1,60}")
_UNSAFE_IN_PART = re.compile(r"[^A-Za-z0-9_-]+")

UNIT_LABELS: dict[Unit, str] = {
    "fraction": "%",
    "points": "points",
    "seconds": "s",
    "score": "score",
    "rank": "rank",
    "count": "number",
    "duration": "s",
    "rate": "tokens/s",
    "factor": "s per s",
}
"""Units, short enough for a heading."""
UNITS: dict[Unit, str] = {**UNIT_LABELS, "points": "points, 0 to 100"}
"""The unit of a number as printed by `shown`."""
DIFFERENCES: dict[Unit, str] = {
    "fraction": " points",
    "points": " points",
    "seconds": " s",
    "score": "",
    "rank": "",
    "count": "",
    "duration": " s",
    "rate": " tokens/s",
    "factor": " s per s",
}
"""Units of differences; those of fractions are percentage points."""
MINUS = "−"
_WITH_DIGITS = ("duration", "rate", "factor")
"""Units whose numbers have significant digits."""
_SIGNIFICANT = 3


def rounded(value: float, unit: Unit) -> Decimal:
    """``value`` as printed, in percent if it is a fraction.

    Percentages, points and seconds have one decimal, scores three, ranks and counts none;
    durations, rates and factors have three significant digits. Halves of the decimal number that
    ``repr`` gives are rounded away from zero; there is no -0.0.

    >>> [str(rounded(value, "duration")) for value in (0.01234, 1.234, 9.996, 12.35, 1234.5)]
    ['0.0123', '1.23', '10.0', '12.4', '1235']
    """
    number = Decimal(repr(float(value))) * (100 if unit == "fraction" else 1)
    if unit in _WITH_DIGITS:
        return _to_significant_digits(number) + Decimal(0)
    step = Decimal({"score": "0.001", "rank": "1", "count": "1"}.get(unit, "0.1"))
    return number.quantize(step, rounding=ROUND_HALF_UP) + Decimal(0)


def _to_significant_digits(number: Decimal) -> Decimal:
    """The number to three significant digits, and all digits before the point."""
    result = _to_own_digits(number)
    if result.adjusted() > number.adjusted():  # 9.996 is 10.00 now, with a digit too many
        return _to_own_digits(result)
    return result


def _to_own_digits(number: Decimal) -> Decimal:
    """The number with as many decimals as the place of its first digit allows."""
    step = Decimal(1).scaleb(min(0, number.adjusted() + 1 - _SIGNIFICANT))
    return number.quantize(step, rounding=ROUND_HALF_UP)


def shown(value: float, unit: Unit) -> str:
    """``value`` as text, without its unit."""
    return f"{rounded(value, unit):f}"


def shown_interval(cell: Cell, unit: Unit) -> str:
    """``58.1, 64.4``; empty for a cell without an interval. If the data limit one end alone, that
    end with the word ``from`` or ``to``.
    """
    if cell.low is None or cell.high is None:
        return interval(cell.low, cell.high, unit)
    return f"{shown(cell.low, unit)}, {shown(cell.high, unit)}"


def direction(column: BoardColumn) -> str:
    """Which values of the column are good; empty where more is better.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Delay", unit="seconds",
    ...                      higher_is_better=False)
    >>> direction(column)
    'lower is better'
    """
    if column.signed:
        return "0 is best"
    return "" if column.higher_is_better else "lower is better"


def column_note(column: BoardColumn) -> str:
    """The column's unit, and which values are good.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Delay", unit="seconds",
    ...                      higher_is_better=False)
    >>> column_note(column)
    's, lower is better'
    """
    return ", ".join(filter(None, (UNITS[column.unit], direction(column))))


def shown_name(board: Board, model: str, blind: bool = False) -> str:
    """The name of the model with the slug ``model``; ``(blind)`` marks runs without media."""
    name = board.models[model].name if model in board.models else model
    return f"{name} (blind)" if blind else name


def safe_name(text: str) -> str:
    """``text`` as (part of) a file name: unchanged if it is safe, else with a hash.

    The hash keeps names distinct.
    """
    safe = _UNSAFE.sub("-", text).strip("-.")[:80]
    if text and safe == text:
        return text
    return f"{safe}-{short_hash(text)[:8]}".lstrip("-")


def column_key(column: Column) -> str:
    """The column's key: task, metric, breakdown and group joined by dots.

    Other characters than letters, digits, ``_`` and ``-`` are replaced, with a hash to keep keys
    distinct.
    """
    names = (column.task, column.metric, column.breakdown, column.group)
    return ".".join(_key_part(name) for name in names if name is not None)


def _key_part(name: str) -> str:
    """``name`` if it is safe in keys, else its safe characters and a hash."""
    if _SAFE_PART.fullmatch(name):
        return name
    safe = _UNSAFE_IN_PART.sub("-", name).strip("-")[:40]
    return f"{safe}-{short_hash(name)[:8]}"


def number(value: float, unit: Unit) -> str:
    """``value`` in its unit, with a true minus sign.

    >>> number(0.5806, "fraction"), number(-1.25, "seconds")
    ('58.1', '−1.3')
    """
    return shown(value, unit).replace("-", MINUS)


def difference(value: float, unit: Unit) -> str:
    """As `number`, with a plus sign if it is greater than zero."""
    text = number(value, unit)
    return text if text.startswith(MINUS) or not text.strip("0.") else f"+{text}"


def interval(low: float | None, high: float | None, unit: Unit) -> str:
    """Both ends, or nothing without an interval; separated by ``to`` if one is negative. If the
    data limit one end alone, that end with the word ``from`` or ``to``.

    >>> interval(0.4, 0.5, "fraction"), interval(1.2, None, "duration")
    ('40.0–50.0', 'from 1.20')
    """
    if low is None or high is None:
        if low is not None:
            return f"from {number(low, unit)}"
        return "" if high is None else f"to {number(high, unit)}"
    ends = number(low, unit), number(high, unit)
    return (" to " if MINUS in "".join(ends) else "–").join(ends)


def exact(value: float | None) -> str:
    """Six significant digits in the board's own unit, for sorting.

    >>> exact(0.5806451612), exact(None)
    ('0.580645', '')
    """
    return "" if value is None else f"{value:.6g}"

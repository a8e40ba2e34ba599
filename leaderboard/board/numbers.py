"""Units of scores, and numbers, names, keys and findings as pages, exports and figures show them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

from medtasks.catalog.benchmark import Column
from medtasks.core.files import short_hash

from .board import Board, BoardColumn, BoardModel, Cell, Ranking, Unit

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_SAFE_PART = re.compile(r"[A-Za-z0-9_-]{1,60}")
_UNSAFE_IN_PART = re.compile(r"[^A-Za-z0-9_-]+")

UNIT_LABELS: dict[Unit, str] = {"fraction": "%", "points": "points", "seconds": "s", "score": "score", "rank": "rank"}
"""Units, short enough for a heading."""
UNITS: dict[Unit, str] = {**UNIT_LABELS, "points": "points, 0 to 100"}
"""The unit of a number as printed by `shown`."""
_DIFFERENCES: dict[Unit, str] = {"fraction": " points", "points": " points", "seconds": " s", "score": "", "rank": ""}
"""Units of differences; those of fractions are percentage points."""
MINUS = "−"
MOST_NAMED = 3
"""Models named in a sentence; the others are counted."""


def rounded(value: float, unit: Unit) -> Decimal:
    """``value`` as printed: fractions in percent, points and seconds with one decimal, scores with three, ranks whole.
    Halves of the decimal number that ``repr`` gives are rounded away from zero; there is no -0.0."""
    number = Decimal(repr(float(value))) * (100 if unit == "fraction" else 1)
    step = Decimal({"score": "0.001", "rank": "1"}.get(unit, "0.1"))
    return number.quantize(step, rounding=ROUND_HALF_UP) + Decimal(0)


def shown(value: float, unit: Unit) -> str:
    """``value`` as text, without its unit."""
    return f"{rounded(value, unit):f}"


def shown_interval(cell: Cell, unit: Unit) -> str:
    """``58.1, 64.4``; empty for a cell without an interval."""
    return ", ".join(shown(end, unit) for end in (cell.low, cell.high) if end is not None)


def direction(column: BoardColumn) -> str:
    """Which values of the column are good; empty where more is better."""
    return "0 is best" if column.signed else "lower is better" * (not column.higher_is_better)


def column_note(column: BoardColumn) -> str:
    """Unit and direction: ``s, 0 is best``."""
    return ", ".join(filter(None, (UNITS[column.unit], direction(column))))


def shown_name(board: Board, model: str, blind: bool = False) -> str:
    """The name of the model with the slug ``model``; runs without media are marked."""
    name = board.models[model].name if model in board.models else model
    return f"{name} (blind)" if blind else name


def safe_name(text: str) -> str:
    """``text`` as (part of) a file name: unchanged if it is safe, else with a hash, so that names stay distinct."""
    kept = _UNSAFE.sub("-", text).strip("-.")[:80]
    return text if kept == text and text else f"{kept}-{short_hash(text)[:8]}".lstrip("-")


def column_key(column: Column) -> str:
    """The column's key: task, metric, breakdown and group joined by dots; other characters than letters, digits, ``_``
    and ``-`` are replaced, with a hash to keep keys distinct."""
    parts = [part for part in (column.task, column.metric, column.breakdown, column.group) if part is not None]
    safe = [_UNSAFE_IN_PART.sub("-", part).strip("-")[:40] for part in parts]
    return ".".join(
        part if _SAFE_PART.fullmatch(part) else f"{kept}-{short_hash(part)[:8]}"
        for part, kept in zip(parts, safe, strict=True)
    )


def number(value: float, unit: Unit) -> str:
    """``value`` in its unit, with a true minus sign."""
    return shown(value, unit).replace("-", MINUS)


def difference(value: float, unit: Unit) -> str:
    """As `number`, with a plus sign if it is greater than zero."""
    text = number(value, unit)
    return text if text.startswith(MINUS) or not text.strip("0.") else f"+{text}"


def interval(low: float | None, high: float | None, unit: Unit) -> str:
    """Both ends, or nothing without an interval; separated by ``to`` if one is negative."""
    if low is None or high is None:
        return ""
    ends = number(low, unit), number(high, unit)
    return (" to " if MINUS in "".join(ends) else "–").join(ends)


def exact(value: float | None) -> str:
    """Six significant digits in the board's own unit, for sorting."""
    return "" if value is None else f"{value:.6g}"


def finding(ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]) -> str:
    """What the ranking shows, in a sentence or two; ``models`` and the ``cells`` of the ranked score are by slug."""
    order = [one.model for one in ranking.ranked]
    if not order:
        return "No model is ranked."
    best = models[order[0]].name
    if len(order) == 1:
        return f"{best} is the only model with a comparable result."
    letters = {one.model: {*one.letters} for one in ranking.ranked}
    equals = [model for model in order if letters[model] & letters[order[0]]]
    behind = [model for model in order if model not in equals]
    # models that share a letter with the best may still differ from each other
    others = equals if len(equals) == 2 else equals[1:]
    parts = [f"{_named(others, models)} cannot be told apart" + f" from {best}" * (len(equals) > 2)] if others else []
    if behind:
        lead = f"{best} leads {models[behind[0]].name}{_by(order[0], behind[0], ranking)}"
        if len(behind) > 1 and not letters[behind[0]] & letters[behind[1]]:
            first, second = (models[one].name for one in behind[:2])
            lead += f", and {first} leads {second}{_by(behind[0], behind[1], ranking)}"
        parts.append(lead)
    sentences = [f"{'; '.join(parts)}."]
    if ranking.warning and not behind:
        sentences.append(f"With only {ranking.clusters} clusters, even large differences may not be significant.")
    column = ranking.column
    if column.chance is not None:
        low = {model: cells[model].low for model in order if models[model].type != "baseline"}
        if guessing := [model for model, end in low.items() if end is not None and end <= column.chance]:
            level = f"{number(column.chance, column.unit)}{' %' if column.unit == 'fraction' else ''}"
            verb = "is" if len(guessing) == 1 else "are"
            sentences.append(f"{_named(guessing, models)} {verb} not above chance ({level}).")
    return " ".join(sentences)


def _by(first: str, second: str, ranking: Ranking) -> str:
    """`` by 3.1 points (95 % interval 1.2 to 5.0)``."""
    pair = next(one for one in ranking.pairs if {one.first, one.second} == {first, second})
    unit = ranking.column.unit
    sign = 1 if ranking.column.higher_is_better == (pair.first == first) else -1
    text = f" by {number(sign * pair.difference, unit)}{_DIFFERENCES[unit]}"
    if pair.low is None or pair.high is None:
        return text
    low, high = sorted((sign * pair.low, sign * pair.high))
    return f"{text} (95 % interval {number(low, unit)} to {number(high, unit)})"


def _named(chosen: Sequence[str], models: Mapping[str, BoardModel]) -> str:
    names = [models[model].name for model in chosen]
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more models"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

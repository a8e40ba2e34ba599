"""Scores as figures draw them: numbers with their labels, and a summary in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..schema.numbers import UNITS, direction, shown, shown_interval
from ..schema.score_tables import BoardColumn, Cell
from .labels import joined
from .looks import Look

_UNIT_WORDS = {
    "fraction": "percent",
    "points": "points (0 to 100)",
    "seconds": "seconds",
    "score": "score",
    "duration": "seconds",
    "rate": "tokens per second",
    "factor": "seconds per second",
}


@dataclass(frozen=True)
class DrawnScore:
    """A model's score in one column.

    ``ends`` are those of its interval. ``text`` is its number, starred if the score is
    ``incomplete``, and ``words`` are the model and its score in a sentence; both are empty without
    a value.
    """

    label: str
    look: Look
    value: float | None = None
    ends: tuple[float, float] | None = None
    text: str = ""
    words: str = ""
    incomplete: bool = False

    @property
    def complete_value(self) -> float | None:
        """The value; None if it is incomplete, so that it is not compared with others."""
        return None if self.incomplete else self.value


@dataclass(frozen=True)
class ColumnScores:
    """A column of the board with the score of each model of a figure."""

    column: BoardColumn
    scores: Sequence[DrawnScore]

    @property
    def labels(self) -> list[str]:
        """The models' labels."""
        return [score.label for score in self.scores]

    @property
    def values(self) -> list[float]:
        """The scores' values; models without one are left out."""
        return [score.value for score in self.scores if score.value is not None]


def drawn_score(label: str, look: Look, column: BoardColumn, cell: Cell | None) -> DrawnScore:
    """The score in a cell of ``column``; without a value if there is no cell, or none in it."""
    if cell is None or cell.value is None:
        return DrawnScore(label, look)
    star = "*" if cell.incomplete else ""
    text = f"{shown(cell.value, column.unit)}{star}"
    words = f"{label} {text}"
    ends = None
    if cell.low is not None and cell.high is not None:
        ends = (scaled(cell.low, column), scaled(cell.high, column))
        words += f" ({shown_interval(cell, column.unit)})"
    value = scaled(cell.value, column)
    return DrawnScore(label, look, value, ends, text, words, cell.incomplete)


def scaled(value: float, column: BoardColumn) -> float:
    """``value`` as drawn: fractions in percent, all others unchanged."""
    return 100.0 * value if column.unit == "fraction" else value


def summaries(series: Sequence[ColumnScores], most: int = 8) -> str:
    """The summaries of the first ``most`` columns, and how many more columns there are."""
    return joined([summary(column_scores) for column_scores in series], most)


def summary(column_scores: ColumnScores) -> str:
    """The best and the last model of a column with their scores, in words.

    For a signed column, which has no best value, the lowest and the highest. Incomplete scores are
    considered only if there are no others. Scores are tied if they are written the same.
    """
    column = column_scores.column
    ordered = _ordered_scores(column_scores)
    if not ordered:
        return f"{column.label}: no value"
    first, last = ordered[0], ordered[-1]
    unit = "" if column.unit in ("points", "score") else f" {UNITS[column.unit]}"
    if len(ordered) == 1:
        return f"{column.label}: {first.label} {first.text}{unit}"
    tied_with_first = sum(score.text == first.text for score in ordered[1:])
    if tied_with_first == len(ordered) - 1:
        return f"{column.label}: all {first.text}{unit}"
    first_words = f"{first.words}{unit}"
    if tied_with_first > 0:
        first_words += f" (and {tied_with_first} more)"
    last_words = f"{last.words}{unit}"
    if column.signed:
        return f"{column.label}, {direction(column)}: from {first_words} to {last_words}"
    return f"{column.label}: best {first_words}, last {last_words}"


def _ordered_scores(column_scores: ColumnScores) -> list[DrawnScore]:
    """The scores with a value, best first, or lowest first for a signed column.

    Incomplete scores are left out unless all are incomplete.
    """
    column = column_scores.column
    valued = [score for score in column_scores.scores if score.value is not None]
    complete = [score for score in valued if not score.incomplete]
    highest_first = column.higher_is_better and not column.signed
    return sorted(complete or valued, key=lambda score: score.value or 0.0, reverse=highest_first)


def scale_of(column: BoardColumn) -> str:
    """The scale of a column: percent and points share one."""
    return "percent" if column.unit in ("fraction", "points") else column.unit


def axis_title(columns: Iterable[BoardColumn]) -> str:
    """The units of the columns: ``percent or points (0 to 100)``."""
    units = {column.unit for column in columns}
    return " or ".join(words for unit, words in _UNIT_WORDS.items() if unit in units)

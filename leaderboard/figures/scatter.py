"""Scatter plots of models: a score against an amount that is the better the less it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..board.usage import amount
from ..schema.board import Board
from ..schema.numbers import UNITS
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn, Cell
from .axes import Axis
from .drawn_scores import DrawnScore, drawn_score
from .figure import Figure, extent_text, model_labels
from .labels import joined
from .looks import LOOKS
from .plane import Plane, PlaneCurve, Point

_LOGARITHMIC_FROM = 20.0
"""Ratio of the largest to the smallest amount from which their axis is logarithmic."""
_DOT = 5.0
"""Radius of a point."""


@dataclass(frozen=True)
class Amount:
    """An amount with the ends of its interval, if it has one."""

    value: float
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class ScatterModel:
    """A model with its score, and its amount; None if it is not known."""

    model: str
    score: Cell
    amount: Amount | None


def scatter_figure(
    board: Board,
    plot: BoardPlot,
    column: BoardColumn,
    title: str,
    models: Sequence[ScatterModel],
) -> Figure | None:
    """The scores in a column against the amounts, whose axis has this title.

    The first models are drawn, each with its own look. None if no model has both.
    """
    labels = model_labels(board, [entry.model for entry in models])
    measured = []
    absent = []
    for entry in models:
        if entry.amount is None:
            absent.append(labels[entry.model])
        else:
            measured.append((labels[entry.model], entry.score, entry.amount))
    drawn = []
    for look, (label, score, model_amount) in zip(LOOKS, measured, strict=False):
        drawn.append(_Drawn(drawn_score(label, look, column, score), model_amount))
    if not any(entry.points for entry in drawn):
        return None

    extent = extent_text(drawn, measured)
    words = _words(column, title, drawn, extent)
    omitted = f"Without a value: {joined(absent)}." if absent else ""
    return Figure(
        plot=plot,
        shape=_plane(column, title, drawn),
        extent=extent,
        incomplete=any(entry.score.incomplete for entry in drawn),
        omitted=omitted,
        alt=f"{words} {omitted}".rstrip(),
    )


@dataclass(frozen=True)
class _Drawn:
    """A model's score and amount, as they are drawn."""

    score: DrawnScore
    amount: Amount

    @property
    def points(self) -> list[Point]:
        """The model's point; none without a score."""
        if self.score.value is None:
            return []
        point = Point(self.amount.value, self.score.value, _DOT, self.score.ends, self.amount.ends)
        return [point]


def _words(column: BoardColumn, title: str, drawn: Sequence[_Drawn], extent: str) -> str:
    """The description of the figure: each model's score and amount."""
    numbers = [f"{entry.score.words} at {amount(entry.amount.value)}" for entry in drawn]
    which = f" ({extent})" if extent else ""
    return f"Scatter plot{which}. {column.label} against {title}: {joined(numbers)}."


def _plane(column: BoardColumn, title: str, drawn: Sequence[_Drawn]) -> Plane:
    """The models' points over axes that hold all of them."""
    curves = []
    points: list[Point] = []
    for entry in drawn:
        score = entry.score
        star = "*" if score.incomplete else ""
        curves.append(PlaneCurve(f"{score.label}{star}", score.look, entry.points))
        points += entry.points
    return Plane(_amount_axis(title, points), _score_axis(column, points), curves, joined=False)


def _amount_axis(title: str, points: Sequence[Point]) -> Axis:
    """An axis of all amounts with their intervals: logarithmic if they differ widely, otherwise
    from 0.
    """
    amounts: list[float] = []
    for point in points:
        amounts += [point.x, *(point.ends_across or ())]
    least, most = min(amounts), max(amounts)
    logarithmic = least > 0 and most > _LOGARITHMIC_FROM * least
    if logarithmic:
        low, high = math.log10(least), math.log10(most)
    else:
        low, high = 0.0, most or 1.0
    room = 0.06 * (high - low) or 1.0
    high += room
    if logarithmic:
        low -= room
    ticks = []
    for share in (0.1, 0.5, 0.9):
        value = 10 ** (low + (high - low) * share) if logarithmic else high * share
        ticks.append((value, amount(value) or "0"))
    return Axis(title, low, high, tuple(ticks), logarithmic)


def _score_axis(column: BoardColumn, points: Sequence[Point]) -> Axis:
    """An axis of all scores with their intervals, and of 0."""
    scores = []
    for point in points:
        scores += [point.y, *(point.ends or ())]
    low, high = min(0.0, *scores), max(scores) or 1.0
    ticks = []
    for share in (0, 0.5, 1):
        score = low + (high - low) * share
        ticks.append((score, f"{score:.3g}"))
    title = f"{column.label} ({UNITS[column.unit]})"
    return Axis(title, low, high + 0.05 * (high - low), tuple(ticks))

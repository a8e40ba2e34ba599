"""The figure of a score against what the answers cost, in money, time or tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from ..board.model_order import model_order
from ..board.usage import Measure, amount, plotted
from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import UNITS
from ..schema.plot_data import BoardPlot, ModelUsage
from ..schema.score_tables import BoardColumn
from .axes import Axis
from .drawn_scores import DrawnScore, drawn_score
from .figure import Figure, extent_text, model_labels
from .labels import joined
from .looks import LOOKS
from .plane import Plane, PlaneCurve, Point

_LOGARITHMIC_FROM = 20.0
"""Ratio of the largest to the smallest cost from which their axis is logarithmic."""
_DOT = 5.0
"""Radius of a point."""


def cost_figure(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """The plot's score against the measure of cost that most models have; None without either."""
    measure = plotted([(entry.usage, entry.cost) for entry in benchmark.usage])
    column = _first_column(benchmark, plot)
    if measure is None or column is None:
        return None
    entries = {entry.model: entry for entry in benchmark.usage}
    order = [model for model in model_order(benchmark) if model in entries]
    labels = model_labels(board, order)
    costs = _costs(measure, [entries[model] for model in order])
    drawn = []
    for look, (model, cost) in zip(LOOKS, costs.items(), strict=False):
        score = drawn_score(labels[model], look, column, entries[model].score)
        drawn.append(_ScoreAndCost(score, cost))

    extent = extent_text(drawn, costs)
    title = f"{measure.label.lower()} ({measure.unit})"
    words = _words(column, title, drawn, extent)
    absent = [labels[model] for model in order if model not in costs]
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
class _ScoreAndCost:
    """A model's score, and the cost of its answers."""

    score: DrawnScore
    cost: float

    @property
    def points(self) -> list[Point]:
        """The model's point; none without a score."""
        if self.score.value is None:
            return []
        return [Point(self.cost, self.score.value, _DOT, self.score.ends)]


def _first_column(benchmark: BenchmarkBoard, plot: BoardPlot) -> BoardColumn | None:
    """The first column in the benchmark's tables that the plot shows."""
    for column in chain.from_iterable(table.columns for table in benchmark.tables):
        if column.key in plot.columns:
            return column
    return None


def _costs(measure: Measure, entries: Sequence[ModelUsage]) -> dict[str, float]:
    """The costs of the models for which they are known."""
    costs = {}
    for entry in entries:
        cost = measure.value(entry.usage, entry.cost)
        if cost is not None:
            costs[entry.model] = cost
    return costs


def _words(
    column: BoardColumn, cost_title: str, drawn: Sequence[_ScoreAndCost], extent: str
) -> str:
    """The description of the figure: each model's score and cost."""
    numbers = [f"{entry.score.words} at {amount(entry.cost)}" for entry in drawn]
    which = f" ({extent})" if extent else ""
    return f"Scatter plot{which}. {column.label} against {cost_title}: {joined(numbers)}."


def _plane(column: BoardColumn, cost_title: str, drawn: Sequence[_ScoreAndCost]) -> Plane:
    """The models' points over axes that hold all of them."""
    curves = []
    points: list[Point] = []
    for entry in drawn:
        score = entry.score
        star = "*" if score.incomplete else ""
        curves.append(PlaneCurve(f"{score.label}{star}", score.look, entry.points))
        points += entry.points
    across = _cost_axis(cost_title, points)
    return Plane(across, _score_axis(column, points), curves, joined=False)


def _cost_axis(title: str, points: Sequence[Point]) -> Axis:
    """An axis of all costs: logarithmic if they differ widely, otherwise from 0."""
    costs = [point.x for point in points]
    cheapest, dearest = min(costs), max(costs)
    logarithmic = cheapest > 0 and dearest > _LOGARITHMIC_FROM * cheapest
    if logarithmic:
        low, high = math.log10(cheapest), math.log10(dearest)
    else:
        low, high = 0.0, dearest or 1.0
    room = 0.06 * (high - low) or 1.0
    high += room
    if logarithmic:
        low -= room
    ticks = []
    for share in (0.1, 0.5, 0.9):
        cost = 10 ** (low + (high - low) * share) if logarithmic else high * share
        ticks.append((cost, amount(cost) or "0"))
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

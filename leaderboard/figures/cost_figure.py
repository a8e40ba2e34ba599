"""The figure of a score against what the answers cost, in money, time or tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from ..board.model_order import model_order
from ..board.usage import Measure, amount, plotted
from ..schema.board import BenchmarkBoard, Board, BoardColumn, BoardPlot, ModelUsage
from ..schema.numbers import UNITS
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
    labels = model_labels(board, (model for model in model_order(benchmark) if model in entries))
    costs = _costs(measure, [entries[model] for model in labels])

    curves = []
    numbers = []
    incomplete = False
    for look, (model, cost) in zip(LOOKS, costs.items(), strict=False):
        score = drawn_score(labels[model], look, column, entries[model].score)
        incomplete |= score.incomplete
        numbers.append(f"{score.words} at {amount(cost)}")
        star = "*" if score.incomplete else ""
        curves.append(PlaneCurve(f"{score.label}{star}", look, _points(cost, score)))

    extent = extent_text(curves, costs)
    title = f"{measure.label.lower()} ({measure.unit})"
    which = f" ({extent})" if extent else ""
    sentences = [f"Scatter plot{which}. {column.label} against {title}: {joined(numbers)}."]
    absent = [label for model, label in labels.items() if model not in costs]
    omitted = ""
    if absent:
        omitted = f"Without a value: {joined(absent)}."
        sentences.append(omitted)
    points = list(chain.from_iterable(curve.points for curve in curves))
    plane = Plane(_cost_axis(title, points), _score_axis(column, points), curves, joined=False)
    return Figure(plot, plane, extent, incomplete, omitted, alt=" ".join(sentences))


def _first_column(benchmark: BenchmarkBoard, plot: BoardPlot) -> BoardColumn | None:
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


def _points(cost: float, score: DrawnScore) -> list[Point]:
    """The model's point; none without a score."""
    if score.value is None:
        return []
    return [Point(cost, score.value, _DOT, score.ends)]


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

"""What figures compute from the cells that they show: axes, colours of heat maps, differences, series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from medtasks.stats.ranks import normalised_ranks

from ..board import BenchmarkBoard, Board, BoardColumn, BoardPlot, ModelReliability
from ..numbers import MINUS, difference
from ..usage import Measure, plotted
from .chosen import Chosen, Shown, labelled_best, plotted_tasks
from .looks import LOOKS, MOST_MODELS, Look, listed

Series = list[tuple[str, Look, ModelReliability]]
_WIDE = 20.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


class CostPoints(NamedTuple):
    """The models of a plot of cost: what is to the right, what is upwards, each model with its cost, how many of them
    are drawn if not all, and those without a cost."""

    measure: Measure
    column: BoardColumn
    drawn: list[tuple[Shown, float]]
    extent: str
    absent: list[str]


def by_scale(columns: Sequence[BoardColumn]) -> list[list[int]]:
    """Places of the columns that can share an axis, as percent and points can; ordered by their first column."""
    found: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        found.setdefault("percent" if column.unit in ("fraction", "points") else column.unit, []).append(place)
    return list(found.values())


def axis_title(columns: Iterable[BoardColumn]) -> str:
    """The units of the numbers along the axis."""
    units = {column.unit for column in columns}
    names = {"fraction": "percent", "points": "points (0 to 100)", "seconds": "seconds", "score": "score"}
    return " or ".join(name for unit, name in names.items() if unit in units)


def span(values: Iterable[float], percent: bool) -> tuple[float, float]:
    """Ends of an axis that includes 0, with room for a number at the end of the longest bar."""
    found = [0.0, *values]
    low, high = min(found), max(found)
    if high == low:
        high = 1.0
    room = 0.16 * (high - low)
    low, high = low - (room if low < 0 else 0.0), high + room
    # no tick beyond 100 percent, but room for the numbers
    return (max(low, -118.0), min(high, 118.0)) if percent else (low, high)


def chance_of(column: BoardColumn, plot: BoardPlot) -> float | None:
    """The column's chance level if the plot shows any, by default the plot's."""
    if plot.chance is None:
        return None
    return plot.chance if column.chance is None else column.chance


def heat_number(plot: BoardPlot, column: BoardColumn, model: Shown, good: float | None) -> str:
    if good is None:
        return ""
    return f"{1 - good:.2f}" if plot.ranks else model.number(column)


def goodness_of(plot: BoardPlot, chosen: Chosen) -> list[list[float | None]]:
    """By column and model 0 (worst) to 1 (best), 0.5 if all are equal; None without a value.

    Ranks need a complete one.
    """
    if plot.ranks:
        ranks = [
            normalised_ranks([one.complete(column) for one in chosen.models], higher_is_better=column.higher_is_better)
            for column in chosen.columns
        ]
        return [[None if rank is None else 1 - rank for rank in row] for row in ranks]
    table = [[model.value(column) for model in chosen.models] for column in chosen.columns]
    shared = _share_a_scale(chosen.columns)
    everything = [value for row in table for value in row if value is not None]
    goodness = []
    for row, column in zip(table, chosen.columns, strict=True):
        found = everything if shared else [value for value in row if value is not None]
        low, high = min(found, default=0.0), max(found, default=0.0)
        worst, best = (low, high) if column.higher_is_better else (high, low)
        goodness.append(
            [None if one is None else 0.5 if low == high else (one - worst) / (best - worst) for one in row]
        )
    return goodness


def _share_a_scale(columns: Sequence[BoardColumn]) -> bool:
    """Whether all columns have the same unit and direction, so that they share a scale."""
    return len({(column.unit, column.higher_is_better) for column in columns}) <= 1


def ends_of(plot: BoardPlot, chosen: Chosen) -> tuple[str, str]:
    if plot.ranks:
        return "last: 1", "best: 0"
    if not _share_a_scale(chosen.columns):
        return "worst of the column", "best of the column"
    found = [value for column in chosen.columns for one in chosen.models if (value := one.value(column)) is not None]
    digits = 3 if chosen.columns[0].unit == "score" else 1
    ends = (f"{min(found):.{digits}f}", f"{max(found):.{digits}f}")
    low, high = ends if chosen.columns[0].higher_is_better else ends[::-1]
    return f"worst: {low}", f"best: {high}"


def pair_names(column: BoardColumn, other: BoardColumn) -> tuple[str, str]:
    """Both labels; with their tasks if the labels are equal."""
    if column.label != other.label:
        return column.label, other.label
    return f"{column.label} ({column.task})", f"{other.label} ({other.task})"


def difference_of(one: Shown, column: BoardColumn, other: BoardColumn) -> str:
    """The difference with its sign; empty if one of the two is missing."""
    first, second = one.value(column), one.value(other)
    if first is None or second is None:
        return ""
    # percent and points are drawn on one axis, fractions in percent
    return difference(first - second, "points" if column.unit == "fraction" else column.unit).replace(MINUS, "-")


def reliability_series(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> tuple[Series, str]:
    """The models of the plot's task, best first, and how many of them are drawn if not all."""
    tasks = plotted_tasks(benchmark, plot)
    found = {one.model: one for one in benchmark.reliability if one.task in tasks}
    labels = labelled_best(board, benchmark, found, 26)
    drawn = list(labels)[:MOST_MODELS]
    extent = f" ({len(drawn)} of {len(labels)} models)" if len(drawn) < len(labels) else ""
    return [(labels[model], look, found[model]) for look, model in zip(LOOKS, drawn, strict=False)], extent


def reliability_words(series: Series) -> str:
    """Accuracy by confidence in words."""
    words = [
        f"{label}: "
        + ", ".join(
            f"{100 * each.confidence:.0f} % sure, {100 * each.accuracy:.0f} % right" for each in one.reliability.bins
        )
        for label, _, one in series
    ]
    return f"Line chart of accuracy by confidence. {listed(words)}."


def coverage_words(series: Series) -> str:
    """Accuracy by coverage in words."""
    words = []
    for label, _, one in series:
        first, last = 100 * one.reliability.curve[0], 100 * one.reliability.curve[-1]
        words.append(f"{label}: {first:.0f} % right among the most confident tenth, {last:.0f} % among all")
    return f"Line chart of accuracy by coverage. {listed(words)}."


def cost_points(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> CostPoints | None:
    """The models of ``benchmark.usage`` with the score of the plot's column; None without any cost."""
    measure = plotted([(one.usage, one.cost) for one in benchmark.usage])
    columns = (column for table in benchmark.tables for column in table.columns)
    column = next((one for one in columns if one.key in plot.columns), None)
    if measure is None or column is None:
        return None
    used = {one.model: one for one in benchmark.usage}
    values = {model: measure.value(one.usage, one.cost) for model, one in used.items()}
    labels = labelled_best(board, benchmark, used, 26)
    known = [(model, value) for model in labels if (value := values[model]) is not None]
    drawn = [
        (Shown(labels[model], look, {column.key: used[model].score}), value)
        for look, (model, value) in zip(LOOKS, known[:MOST_MODELS], strict=False)
    ]
    extent = f" ({len(drawn)} of {len(known)} models)" if len(drawn) < len(known) else ""
    absent = [label for model, label in labels.items() if values[model] is None]
    return CostPoints(measure, column, drawn, extent, absent)


def is_wide(values: Sequence[float]) -> bool:
    """Whether an axis of these values is logarithmic."""
    return min(values) > 0 and max(values) > _WIDE * min(values)


def is_radar(chosen: Chosen) -> bool:
    """Whether the columns make a radar: three or more, on one scale, none of them signed, and nothing below 0."""
    signed = any(column.signed for column in chosen.columns)
    enough = len(chosen.columns) >= 3 and len(by_scale(chosen.columns)) == 1
    return not signed and enough and min(all_values(chosen)) >= 0


def all_values(chosen: Chosen) -> list[float]:
    """The values of all models in all columns."""
    return [value for one in chosen.models for column in chosen.columns if (value := one.value(column)) is not None]


def rim_of(columns: Sequence[BoardColumn], highest: float) -> float:
    """The value at the rim of a radar."""
    percent = columns[0].unit in ("fraction", "points")
    top = min(100.0, 20.0 * math.ceil(highest / 20)) if percent else highest
    return max(top, highest) or 1.0

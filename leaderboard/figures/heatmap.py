"""Heat maps: models by columns, as values or as normalised ranks; lighter is better."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from medtasks.stats import normalised_ranks

from ..board import BoardColumn, BoardPlot
from .canvas import INK, WIDTH, Drawing, Drawn, listed, new_figure, short
from .chosen import Chosen, Shown

_WITH_NUMBERS = 12
"""Columns up to which a cell has room for its number."""

_MISSING: Drawn = {"facecolor": "none", "hatch": "xxxx", "edgecolor": INK, "linewidth": 0.3, "alpha": 0.55}
_DARK_TEXT, _LIGHT_TEXT = "#101010", "#fafafa"
_DARK_BELOW = 0.633
"""The position in the colour map at which its (monotonic) luminance reaches 0.3."""


def draw(plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str]) -> Drawing:
    """Models by columns, with the fewer of the two across, so that the figure fits a phone.

    The best model by the headline comes first. Columns with different units are each scaled separately.
    """
    columns, models = [short(one.label) for one in chosen.columns], [one.label for one in chosen.models]
    turned = len(columns) > len(models)
    down, across = (columns, models) if turned else (models, columns)
    numbers = len(across) <= _WITH_NUMBERS
    width = max(WIDTH, 2.0 + (0.36 if numbers else 0.2) * len(across))
    above = 0.065 * max((len(name) for name in across), default=0)
    figure = new_figure(plot.title, 0.18 * len(down) + above + 0.75, width=width, lines=subtitle)
    body, scale = figure.subplots(2, 1, height_ratios=[max(len(down), 3), 0.7])
    goodness = _goodness(plot, chosen)
    for place, column in enumerate(chosen.columns):
        for number, model in enumerate(chosen.models):
            at = (number, place) if turned else (place, number)
            good = goodness[place][number]
            _cell(body, at, good, _number(plot, column, model, good) if numbers else "")
    _frame(body, across, down)
    _scale(scale, plot, chosen, width)
    return Drawing(figure, plot.title, _alt(plot, chosen, goodness))


def _number(plot: BoardPlot, column: BoardColumn, model: Shown, good: float | None) -> str:
    if good is None:
        return ""
    return f"{1 - good:.2f}" if plot.ranks else model.number(column)


def _goodness(plot: BoardPlot, chosen: Chosen) -> list[list[float | None]]:
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
    shared = _shared(chosen.columns)
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


def _shared(columns: Sequence[BoardColumn]) -> bool:
    """Whether all columns have the same unit and direction, so that they share a scale."""
    return len({(column.unit, column.higher_is_better) for column in columns}) <= 1


def _colour(good: float) -> tuple[float, float, float]:
    red, green, blue, _ = matplotlib.colormaps["cividis"](good)
    return (float(red), float(green), float(blue))


def _cell(axes: Axes, at: tuple[int, int], good: float | None, text: str) -> None:
    if good is None:
        axes.add_patch(Rectangle(at, 1, 1, **_MISSING))
        return
    colour = _colour(good)
    axes.add_patch(Rectangle(at, 1, 1, facecolor=colour, edgecolor=colour, linewidth=0.2))
    ink = _LIGHT_TEXT if good < _DARK_BELOW else _DARK_TEXT
    axes.text(at[0] + 0.5, at[1] + 0.5, text, ha="center", va="center", size=7, color=ink)


def _frame(axes: Axes, across: Sequence[str], down: Sequence[str]) -> None:
    axes.set_xlim(0, len(across))
    axes.set_ylim(len(down), 0)
    axes.set_xticks([place + 0.5 for place in range(len(across))], across, rotation=90)
    axes.set_yticks([place + 0.5 for place in range(len(down))], down)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _scale(axes: Axes, plot: BoardPlot, chosen: Chosen, width: float) -> None:
    """A key: what the lightest, the darkest and the hatched cells mean."""
    steps = 12
    for step in range(steps):
        colour = _colour(step / (steps - 1))
        axes.add_patch(Rectangle((step, 0), 1, 1, facecolor=colour, edgecolor=colour, linewidth=0.2))
    axes.add_patch(Rectangle((steps + 2, 0), 1, 1, **_MISSING))
    worst, best = _ends(plot, chosen)
    axes.text(0, -0.15, worst, va="top", size=7)
    axes.text(steps, -0.15, best, va="top", ha="right", size=7)
    axes.text(steps + 3.3, 0.5, "no rank" if plot.ranks else "no value", va="center", size=7)
    axes.set_xlim(0, max(steps + 6, 4.2 * width))
    axes.set_ylim(-1.1, 1)
    axes.set_axis_off()


def _ends(plot: BoardPlot, chosen: Chosen) -> tuple[str, str]:
    if plot.ranks:
        return "last: 1", "best: 0"
    if not _shared(chosen.columns):
        return "worst of the column", "best of the column"
    found = [value for column in chosen.columns for one in chosen.models if (value := one.value(column)) is not None]
    digits = 3 if chosen.columns[0].unit == "score" else 1
    ends = (f"{min(found):.{digits}f}", f"{max(found):.{digits}f}")
    low, high = ends if chosen.columns[0].higher_is_better else ends[::-1]
    return f"worst: {low}", f"best: {high}"


def _alt(plot: BoardPlot, chosen: Chosen, goodness: Sequence[Sequence[float | None]]) -> str:
    lacks = "rank" if plot.ranks else "value"
    rows = f"{len(chosen.models)} models by {len(chosen.columns)} columns, lighter is better, hatched has no {lacks}"
    if not plot.ranks:
        summary = listed([chosen.summary(column) for column in chosen.columns], 6)
        return f"Heat map of values, {rows}. {summary}.{chosen.omissions()}"
    means = []
    for row, model in enumerate(chosen.models):
        ranks = [1 - good for column in goodness if (good := column[row]) is not None]
        if ranks:
            means.append((math.fsum(ranks) / len(ranks), model.label))
    best = listed([f"{label} {mean:.2f}" for mean, label in sorted(means)], 3)
    rows = f"0 for the best and 1 for the last, {rows}"
    return f"Heat map of ranks, {rows}. Lowest mean over the columns: {best}.{chosen.omissions()}"

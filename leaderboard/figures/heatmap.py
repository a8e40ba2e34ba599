"""Heat maps: models by columns, as values or as normalised ranks; lighter is better."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ..board import BoardPlot
from .canvas import WIDTH, Drawing, new_figure
from .chosen import Chosen
from .looks import INK, Drawn, listed, short
from .values import ends_of, goodness_of, heat_number

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
    goodness = goodness_of(plot, chosen)
    for place, column in enumerate(chosen.columns):
        for number, model in enumerate(chosen.models):
            at = (number, place) if turned else (place, number)
            good = goodness[place][number]
            _cell(body, at, good, heat_number(plot, column, model, good) if numbers else "")
    _frame(body, across, down)
    _scale(scale, plot, chosen, width)
    return Drawing(figure, plot.title, _alt(plot, chosen, goodness))


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
    worst, best = ends_of(plot, chosen)
    axes.text(0, -0.15, worst, va="top", size=7)
    axes.text(steps, -0.15, best, va="top", ha="right", size=7)
    axes.text(steps + 3.3, 0.5, "no rank" if plot.ranks else "no value", va="center", size=7)
    axes.set_xlim(0, max(steps + 6, 4.2 * width))
    axes.set_ylim(-1.1, 1)
    axes.set_axis_off()


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

"""Bars: a group of bars for each column, a bar for each model, with intervals and the chance level."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ..board import BoardColumn, BoardPlot
from ..exports.numbers import shown
from .canvas import Drawing, new_figure
from .chosen import Chosen, Shown, scaled
from .scales import axis_title, by_scale, decorate, heading, span, written
from .style import INK
from .text import listed, short

__all__ = ["draw"]

_LINE = 0.165
"""Inches from bar to bar."""


def draw(plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str], confidence: float) -> Drawing:
    """Each column's models in one order, best by the headline first, so that a model keeps its place and look."""
    panels = by_scale(chosen.columns)
    rows = [len(places) * (len(chosen.models) + 1.4) for places in panels]
    figure = new_figure(plot.title, sum(rows) * _LINE + 0.55 * len(panels), lines=subtitle)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=rows)
    for number, places in enumerate(panels):
        axes = figure.add_subplot(grid[number])
        _panel(axes, [chosen.columns[place] for place in places], chosen.models, plot, confidence)
    return Drawing(figure, plot.title, _alt(plot, chosen, confidence))


def _panel(
    axes: Axes, columns: Sequence[BoardColumn], models: Sequence[Shown], plot: BoardPlot, confidence: float
) -> None:
    values = [value for column in columns for one in models for value in _reach(one, column, plot)]
    low, high = span(values, columns[0].unit in ("fraction", "points"))
    axes.set_xlim(low, high)
    ticks, names = [], []
    for place, column in enumerate(columns):
        top = place * (len(models) + 1.4)
        chance = _chance(column, plot)
        told = "" if chance is None else f"dashed: chance {shown(chance, column.unit)}"
        heading(axes, top, short(column.label, 22 if told else 36), told)
        for number, one in enumerate(models):
            ticks.append(top + 1 + number)
            names.append(one.label)
            _bar(axes, one, column, top + 1 + number, high - low)
        if chance is not None:
            at = scaled(chance, column)
            axes.plot([at, at], [top + 0.45, top + len(models) + 0.55], color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
    axes.set_ylim(len(columns) * (len(models) + 1.4) - 0.6, -0.7)
    axes.set_yticks(ticks, names)
    axes.axvline(0, color=INK, linewidth=0.7)
    decorate(axes, f"{axis_title(columns)}; lines are {100 * confidence:g} % intervals")


def _bar(axes: Axes, one: Shown, column: BoardColumn, at: float, width: float) -> None:
    value = one.value(column)
    if value is None:
        written(axes, 0.01 * width, at, "no value", italic=True)
        return
    style = one.look
    axes.barh(at, value, height=0.74, color=style.colour, hatch=style.hatch, edgecolor=INK, linewidth=0.5)
    ends = one.ends(column)
    if ends is not None:
        axes.plot(ends, [at, at], color=INK, linewidth=1.2, marker="|", markersize=4, markeredgewidth=1)
    behind = max(0.0, value, *(ends or ()))
    written(axes, behind + 0.015 * width, at, one.number(column))


def _reach(one: Shown, column: BoardColumn, plot: BoardPlot) -> list[float]:
    chance = _chance(column, plot)
    value = one.value(column)
    return [
        *(one.ends(column) or ()),
        *([] if value is None else [value]),
        *([] if chance is None else [scaled(chance, column)]),
    ]


def _chance(column: BoardColumn, plot: BoardPlot) -> float | None:
    """The column's chance level where the plot shows any, else the plot's."""
    if plot.chance is None:
        return None
    return float(plot.chance if column.chance is None else column.chance)


def _alt(plot: BoardPlot, chosen: Chosen, confidence: float) -> str:
    which = f" for {chosen.extent}" if chosen.extent else ""
    levels = {_chance(column, plot): column for column in chosen.columns}
    chance = [f"{shown(level, column.unit)}" for level, column in levels.items() if level is not None]
    guessing = f" Chance level {' or '.join(chance)}, drawn dashed." if chance else ""
    return (
        f"Bar chart{which}, with {100 * confidence:g} % intervals. "
        f"{listed([chosen.summary(column) for column in chosen.columns])}.{guessing}{chosen.missing()}"
        f"{chosen.left_out()}"
    )

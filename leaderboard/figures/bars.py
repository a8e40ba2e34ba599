"""Bars: a group of bars for each column, a bar for each model, with intervals and the chance level."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ..board import BoardColumn, BoardPlot
from ..numbers import shown
from .canvas import Drawing
from .chosen import Chosen, Shown, scaled
from .looks import INK, listed, short
from .panels import lines, panels, top_of, written
from .values import axis_title, chance_of


def draw(plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str], confidence: float) -> Drawing:
    """The models of each column in one order, best by the headline first, so that each keeps its place and look."""
    figure, axes_of = panels(plot, chosen, subtitle)
    for axes, places in axes_of:
        _panel(axes, [chosen.columns[place] for place in places], chosen.models, plot, confidence)
    return Drawing(figure, plot.title, _alt(plot, chosen, confidence))


def _panel(
    axes: Axes, columns: Sequence[BoardColumn], models: Sequence[Shown], plot: BoardPlot, confidence: float
) -> None:
    chances = [chance_of(column, plot) for column in columns]
    texts = [
        column.remark if chance is None else f"dashed: chance {shown(chance, column.unit)}"
        for column, chance in zip(columns, chances, strict=True)
    ]
    headings = [(short(column.label, 22 if text else 36), text) for column, text in zip(columns, texts, strict=True)]
    drawn = [(one.value(column), *(one.ends(column) or ())) for column in columns for one in models]
    values = [value for found in drawn for value in found if value is not None]
    values += [scaled(chance, column) for column, chance in zip(columns, chances, strict=True) if chance is not None]
    title = f"{axis_title(columns)}; lines are {100 * confidence:g} % intervals"
    for block, one, at, width in lines(axes, headings, models, values, title):
        _bar(axes, one, columns[block], at, width)
    for block, (column, chance) in enumerate(zip(columns, chances, strict=True)):
        if chance is not None:
            x, top = scaled(chance, column), top_of(block, models)
            ends = [top + 0.45, top + len(models) + 0.55]
            axes.plot([x, x], ends, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
    axes.axvline(0, color=INK, linewidth=0.7)


def _bar(axes: Axes, one: Shown, column: BoardColumn, at: float, width: float) -> None:
    value = one.value(column)
    if value is None:
        written(axes, 0.01 * width, at, "no value", italic=True)
        return
    axes.barh(at, value, height=0.74, color=one.look.colour, hatch=one.look.hatch, edgecolor=INK, linewidth=0.5)
    ends = one.ends(column) or ()
    if ends:
        axes.plot(ends, [at, at], color=INK, linewidth=1.2, marker="|", markersize=4, markeredgewidth=1)
    written(axes, max(0.0, value, *ends) + 0.015 * width, at, one.number(column))


def _alt(plot: BoardPlot, chosen: Chosen, confidence: float) -> str:
    which = f" for {chosen.extent}" if chosen.extent else ""
    levels = {chance_of(column, plot): column for column in chosen.columns}
    chance = [shown(level, column.unit) for level, column in levels.items() if level is not None]
    guessing = f" Chance level {' or '.join(chance)}, drawn dashed." if chance else ""
    summary = listed([chosen.summary(column) for column in chosen.columns])
    return f"Bar chart{which}, with {100 * confidence:g} % intervals. {summary}.{guessing}{chosen.omissions()}"

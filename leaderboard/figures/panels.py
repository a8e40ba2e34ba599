"""Horizontal bars and dumbbells: one axis per scale, on it a block of lines for each column, a line for each model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..board import BoardPlot
from .canvas import new_figure
from .chosen import Chosen, Shown
from .looks import GRID, INK, MUTED, Drawn
from .values import by_scale, span

_LINE = 0.165
"""Line spacing in inches."""


def panels(
    plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str], below: float = 0.0
) -> tuple[Figure, Iterator[tuple[Axes, list[int]]]]:
    """A figure with an axis for each scale, and the places of the columns on each; ``below`` is room in inches."""
    scales = by_scale(chosen.columns)
    rows = [top_of(len(places), chosen.models) for places in scales]
    figure = new_figure(plot.title, sum(rows) * _LINE + 0.55 * len(scales) + below, lines=subtitle)
    grid = figure.add_gridspec(len(scales), 1, height_ratios=rows)
    return figure, ((figure.add_subplot(grid[number]), places) for number, places in enumerate(scales))


def top_of(block: int, models: Sequence[Shown]) -> float:
    """The height at which a block begins."""
    return block * (len(models) + 1.4)


def lines(
    axes: Axes, headings: Sequence[tuple[str, str]], models: Sequence[Shown], values: Iterable[float], title: str
) -> Iterator[tuple[int, Shown, float, float]]:
    """Lay out an axis for ``values``, and yield block, model, height of the line, and the width of the axis.

    ``headings`` are the texts at the left and at the right above each block.
    """
    low, high = span(values, title.startswith("p"))
    axes.set_xlim(low, high)
    ticks, names = [], []
    for block, (left, right) in enumerate(headings):
        top = top_of(block, models)
        across = axes.get_yaxis_transform()
        axes.text(0, top, left, transform=across, va="center", weight="bold", size=8.5).set_in_layout(False)
        axes.text(1, top, right, transform=across, va="center", ha="right", size=7, color=MUTED).set_in_layout(False)
        for number, one in enumerate(models, start=1):
            ticks.append(top + number)
            names.append(one.label)
            yield block, one, top + number, high - low
    axes.set_ylim(top_of(len(headings), models) - 0.6, -0.7)
    axes.set_yticks(ticks, names)
    axes.set_xlabel(title)
    axes.grid(True, axis="x", color=GRID)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", color=MUTED, labelcolor=INK)
    axes.spines["left"].set_visible(False)


def written(axes: Axes, x: float, y: float, text: str, italic: bool = False) -> None:
    """A number, or the reason why there is none, beside a bar or a mark."""
    style: Drawn = {"style": "italic", "color": MUTED} if italic else {}
    axes.text(x, y, text, va="center", size=7, **style).set_in_layout(False)

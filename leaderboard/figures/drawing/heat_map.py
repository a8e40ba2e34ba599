"""Heat maps by matplotlib."""

from __future__ import annotations

import math

import numpy as np
from matplotlib import figure as mpl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.patches import Patch

from ..heat_map import HeatMap
from ..labels import short
from .style import MUTED, WIDTH, Heading, Style, new_figure

_MOST_NUMBERS = 12
"""Columns up to which a cell has room for its number."""
_LABELS_WIDTH = 2.0
"""Width of the labels of rows, in inches."""
_LETTER_HEIGHT = 0.065
"""Of an upright label, in inches."""
_MISSING: Style = {"facecolor": "none", "hatch": "xxxx", "edgecolor": MUTED, "linewidth": 0.0}
_DARK_TEXT, _LIGHT_TEXT = "#101010", "#fafafa"
_DARK_BELOW = 0.633
"""The position in the colour map at which its (monotonic) luminance reaches 0.3."""


def draw_heat_map(shape: HeatMap, heading: Heading) -> mpl.Figure:
    """Coloured cells with their numbers, if there is room; hatched without a value."""
    across = [short(label) for label in shape.across]
    down = [short(row.label) for row in shape.rows]
    has_numbers = len(across) <= _MOST_NUMBERS
    cell_width = 0.36 if has_numbers else 0.2
    width = max(WIDTH, _LABELS_WIDTH + cell_width * len(across))
    labels_height = _LETTER_HEIGHT * max((len(label) for label in across), default=0)
    figure = new_figure(heading, 0.18 * len(down) + labels_height + 0.75, width)
    axes = figure.add_subplot()
    axes.patch.set(**_MISSING)
    cells = axes.pcolormesh(_goodness(shape), cmap="cividis", vmin=0, vmax=1)
    if has_numbers:
        _write_numbers(axes, shape)
    axes.invert_yaxis()
    axes.set_xticks([number + 0.5 for number in range(len(across))], across, rotation=90)
    axes.set_yticks([number + 0.5 for number in range(len(down))], down)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    _add_colour_bar(figure, axes, cells, shape)
    figure.legend([Patch(**_MISSING)], [f"no {shape.lacks}"], loc="lower right", fontsize=7)
    return figure


def _goodness(shape: HeatMap) -> np.ma.MaskedArray:
    """The goodness of all cells, masked where a value is missing."""
    rows = []
    for row in shape.rows:
        rows.append([math.nan if cell.goodness is None else cell.goodness for cell in row.cells])
    return np.ma.masked_invalid(np.array(rows))


def _write_numbers(axes: Axes, shape: HeatMap) -> None:
    """Write the texts of cells, in light ink on dark ones."""
    for y, row in enumerate(shape.rows):
        for x, cell in enumerate(row.cells):
            if cell.goodness is None:
                continue
            ink = _LIGHT_TEXT if cell.goodness < _DARK_BELOW else _DARK_TEXT
            axes.text(x + 0.5, y + 0.5, cell.text, ha="center", va="center", size=7, color=ink)


def _add_colour_bar(figure: mpl.Figure, axes: Axes, cells: ScalarMappable, shape: HeatMap) -> None:
    """Add the colour scale below the cells, with a label at each end."""
    bar = figure.colorbar(
        cells, ax=axes, location="bottom", aspect=30, shrink=0.6, anchor=(0, 0), ticks=[0, 1]
    )
    bar.ax.set_xticklabels([shape.worst, shape.best], size=7)
    worst, best = bar.ax.get_xticklabels()
    worst.set_horizontalalignment("left")
    best.set_horizontalalignment("right")
    bar.ax.tick_params(length=0)
    bar.outline.set_visible(False)
    if bar.solids is not None:
        bar.solids.set_rasterized(False)

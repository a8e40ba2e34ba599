"""Dumbbells: for each model the score of a column (filled) and of the one it is set against (hollow)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..board import BoardColumn, BoardPlot
from ..exports.numbers import shown
from .canvas import Drawing, new_figure
from .chosen import Chosen, Shown
from .scales import axis_title, by_scale, decorate, heading, span, written
from .style import INK, LOOKS, MUTED, PAPER, Drawn
from .text import listed, short

__all__ = ["draw"]

_LINE = 0.165
_FILLED: Drawn = {
    "marker": "o",
    "markersize": 5.5,
    "color": LOOKS[0].colour,
    "markeredgecolor": INK,
    "markeredgewidth": 0.5,
}
_HOLLOW: Drawn = {
    "marker": "s",
    "markersize": 5,
    "color": PAPER,
    "markeredgecolor": LOOKS[3].colour,
    "markeredgewidth": 1.4,
}


def draw(plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str]) -> Drawing:
    """A block for each pair of columns, a line for each model; the number behind it is the difference."""
    panels = by_scale(chosen.columns)
    rows = [len(places) * (len(chosen.models) + 1.4) for places in panels]
    figure = new_figure(plot.title, sum(rows) * _LINE + 0.55 * len(panels) + 0.3, lines=subtitle)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=rows)
    for number, places in enumerate(panels):
        axes = figure.add_subplot(grid[number])
        pairs = [(chosen.columns[place], chosen.against[place]) for place in places]
        _panel(axes, pairs, chosen.models)
    handles = [Line2D([], [], linestyle="none", **how) for how in (_FILLED, _HOLLOW)]
    figure.legend(handles, ["named first", "named second"], loc="outside lower center", ncols=2)
    return Drawing(figure, plot.title, _alt(chosen))


def _panel(axes: Axes, pairs: Sequence[tuple[BoardColumn, BoardColumn]], models: Sequence[Shown]) -> None:
    values = [value for pair in pairs for column in pair for one in models if (value := one.value(column)) is not None]
    low, high = span(values, pairs[0][0].unit in ("fraction", "points"))
    axes.set_xlim(low, high)
    ticks, names = [], []
    for place, (column, other) in enumerate(pairs):
        top = place * (len(models) + 1.4)
        heading(axes, top, _against(column, other))
        for number, one in enumerate(models):
            ticks.append(top + 1 + number)
            names.append(one.label)
            _dumbbell(axes, one, column, other, top + 1 + number, high - low)
    axes.set_ylim(len(pairs) * (len(models) + 1.4) - 0.6, -0.7)
    axes.set_yticks(ticks, names)
    decorate(axes, axis_title(column for pair in pairs for column in pair))


def _names(column: BoardColumn, other: BoardColumn) -> tuple[str, str]:
    """The labels of both; with their tasks where the labels are alike."""
    if column.label != other.label:
        return column.label, other.label
    return f"{column.label} ({column.task})", f"{other.label} ({other.task})"


def _against(column: BoardColumn, other: BoardColumn) -> str:
    first, second = _names(column, other)
    whole = f"{short(first, 44)} against {short(second, 44)}"
    return whole if len(whole) <= 44 else f"{short(first, 18)} against {short(second, 18)}"


def _dumbbell(axes: Axes, one: Shown, column: BoardColumn, other: BoardColumn, at: float, width: float) -> None:
    first, second = one.value(column), one.value(other)
    if first is not None and second is not None:
        axes.plot([second, first], [at, at], color=MUTED, linewidth=1.3)
    if second is not None:
        axes.plot([second], [at], linestyle="none", **_HOLLOW)
    if first is not None:
        axes.plot([first], [at], linestyle="none", **_FILLED)
    there = [value for value in (first, second) if value is not None]
    behind = max(there, default=0.0) + 0.025 * width
    written(axes, behind, at, _said(one, column, other), italic=not _difference(one, column, other))


def _difference(one: Shown, column: BoardColumn, other: BoardColumn) -> str:
    """The difference with its sign; empty where one of the two is missing."""
    first, second = one.value(column), one.value(other)
    if first is None or second is None:
        return ""
    # per cent and points are drawn on one axis; what is drawn is no fraction any more
    text = shown(first - second, "points" if column.unit == "fraction" else column.unit)
    return text if text.startswith("-") or not text.strip("0.") else f"+{text}"


def _said(one: Shown, column: BoardColumn, other: BoardColumn) -> str:
    difference = _difference(one, column, other)
    if difference:
        return difference
    names = zip((column, other), _names(column, other), strict=True)
    missing = [short(name, 20) for each, name in names if one.value(each) is None]
    return f"no value: {' and '.join(missing)}" if missing else ""


def _alt(chosen: Chosen) -> str:
    which = f" for {chosen.extent}" if chosen.extent else ""
    said = []
    for column, other in zip(chosen.columns, chosen.against, strict=True):
        found = [
            f"{one.label} {difference}" for one in chosen.models if (difference := _difference(one, column, other))
        ]
        first, second = _names(column, other)
        said.append(f"{first} minus {second}: {listed(found, 8) or 'no model has both'}")
    return f"Dumbbell chart{which}. {listed(said)}.{chosen.missing()}{chosen.left_out()}"

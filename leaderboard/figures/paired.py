"""Dumbbells: for each model, the score in a column (filled) and in the column it is compared with (hollow)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..board import BoardColumn, BoardPlot
from .canvas import Drawing
from .chosen import Chosen, Shown
from .looks import LOOKS, MUTED, PAPER, Drawn, listed, short
from .panels import lines, panels, written
from .values import axis_title, difference_of, pair_names

_FILLED = LOOKS[0].mark(5.5)
_HOLLOW: Drawn = {
    "marker": "s",
    "markersize": 5,
    "color": PAPER,
    "markeredgecolor": LOOKS[3].colour,
    "markeredgewidth": 1.4,
}


def draw(plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str]) -> Drawing:
    """A block for each pair of columns, a line for each model with the difference as a number."""
    figure, axes_of = panels(plot, chosen, subtitle, below=0.3)
    for axes, places in axes_of:
        _panel(axes, [(chosen.columns[place], chosen.against[place]) for place in places], chosen.models)
    handles = [Line2D([], [], linestyle="none", **how) for how in (_FILLED, _HOLLOW)]
    figure.legend(handles, ["named first", "named second"], loc="outside lower center", ncols=2)
    return Drawing(figure, plot.title, _alt(chosen))


def _panel(axes: Axes, pairs: Sequence[tuple[BoardColumn, BoardColumn]], models: Sequence[Shown]) -> None:
    columns = [column for pair in pairs for column in pair]
    values = [value for column in columns for one in models if (value := one.value(column)) is not None]
    headings = [(_against(*pair), "") for pair in pairs]
    for block, one, at, width in lines(axes, headings, models, values, axis_title(columns)):
        _dumbbell(axes, one, *pairs[block], at, width)


def _against(column: BoardColumn, other: BoardColumn) -> str:
    first, second = pair_names(column, other)
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
    x = max((value for value in (first, second) if value is not None), default=0.0) + 0.025 * width
    difference = difference_of(one, column, other)
    names = zip((column, other), pair_names(column, other), strict=True)
    missing = [short(name, 20) for each, name in names if one.value(each) is None]
    written(axes, x, at, difference or f"no value: {' and '.join(missing)}", italic=not difference)


def _alt(chosen: Chosen) -> str:
    which = f" for {chosen.extent}" if chosen.extent else ""
    parts = []
    for column, other in zip(chosen.columns, chosen.against, strict=True):
        found = [
            f"{one.label} {difference}" for one in chosen.models if (difference := difference_of(one, column, other))
        ]
        first, second = pair_names(column, other)
        parts.append(f"{first} minus {second}: {listed(found) or 'no model has both'}")
    return f"Dumbbell chart{which}. {listed(parts)}.{chosen.omissions()}"

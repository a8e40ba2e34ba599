"""Dumbbell charts by matplotlib."""

from __future__ import annotations

from matplotlib import figure as mpl

from ..dumbbells import Dumbbell, DumbbellChart, DumbbellGroup
from ..labels import short
from ..looks import LOOKS
from .panels import MISSING, DrawnPanel, panelled_figure
from .style import MUTED, PAPER, Heading, Style, add_legend, mark

_FILLED = mark(LOOKS[0], 5.5)
_HOLLOW = mark(LOOKS[1], 5, color=PAPER, markeredgecolor=LOOKS[3].colour, markeredgewidth=1.4)
_LEGEND_HEIGHT = 0.3
"""In inches."""
_MOST_IN_HEADING = 44
"""Characters."""


def draw_dumbbells(chart: DumbbellChart, heading: Heading) -> mpl.Figure:
    """Two marks for each model, joined by a line, with their difference."""
    figure, panels = panelled_figure(chart.groups, heading, legend_height=_LEGEND_HEIGHT)
    for panel in panels:
        for top, group in panel.headings():
            panel.write_heading(top, _heading(group))
            for number, dumbbell in enumerate(group.dumbbells, start=1):
                _draw_dumbbell(panel, group, dumbbell, top + number)
        panel.finish(panel.axis.title)
    add_legend(figure, ["named first", "named second"], [_FILLED, _HOLLOW])
    return figure


def _heading(group: DumbbellGroup) -> str:
    """The names of both columns, shortened if they are too long together."""
    heading = " against ".join(short(name, _MOST_IN_HEADING) for name in group.names)
    if len(heading) > _MOST_IN_HEADING:
        return " against ".join(short(name, 18) for name in group.names)
    return heading


def _draw_dumbbell(
    panel: DrawnPanel[DumbbellGroup], group: DumbbellGroup, dumbbell: Dumbbell, y: float
) -> None:
    """Draw a model's marks, as many as it has values, and its difference or what it lacks."""
    first, second = dumbbell.first, dumbbell.second
    if first is not None and second is not None:
        panel.axes.plot([second, first], [y, y], color=MUTED, linewidth=1.3)
    _draw_mark(panel, second, y, _HOLLOW)
    _draw_mark(panel, first, y, _FILLED)

    values = [value for value in (first, second) if value is not None]
    x = max(values, default=0.0) + 0.025 * panel.span
    if dumbbell.difference:
        panel.write(x, y, dumbbell.difference)
        return
    lacking = []
    for name, value in zip(group.names, (first, second), strict=True):
        if value is None:
            lacking.append(short(name, 20))
    panel.write(x, y, f"no value: {' and '.join(lacking)}", **MISSING)


def _draw_mark(
    panel: DrawnPanel[DumbbellGroup], value: float | None, y: float, mark_style: Style
) -> None:
    if value is not None:
        panel.axes.plot([value], [y], linestyle="none", **mark_style)

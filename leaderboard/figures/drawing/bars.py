"""Bar charts by matplotlib."""

from __future__ import annotations

from matplotlib import figure as mpl

from ..bars import BarChart, BarGroup
from ..drawn_scores import DrawnScore
from ..labels import short
from .panels import MISSING, DrawnPanel, panelled_figure
from .style import INK, Heading


def draw_bars(chart: BarChart, heading: Heading) -> mpl.Figure:
    """Bars with their intervals and numbers, below the label of their column."""
    figure, panels = panelled_figure(chart.groups, heading)
    for panel in panels:
        for top, group in panel.headings():
            _draw_group(panel, group, top)
        panel.axes.axvline(0, color=INK, linewidth=0.7)
        panel.finish(f"{panel.axis.title}; lines are {100 * chart.confidence:g} % intervals")
    return figure


def _draw_group(panel: DrawnPanel[BarGroup], group: BarGroup, top: float) -> None:
    """Draw a column's label at ``top`` and its bars below, with a dashed line at its floor."""
    panel.write_heading(top, short(group.heading, 22 if group.note else 36), group.note)
    for number, bar in enumerate(group.bars, start=1):
        _draw_bar(panel, bar, top + number)
    if group.floor is not None:
        level = group.floor.level
        ends = [top + 0.45, top + len(group.bars) + 0.55]
        panel.axes.plot([level, level], ends, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))


def _draw_bar(panel: DrawnPanel[BarGroup], bar: DrawnScore, y: float) -> None:
    """Draw a model's bar with its interval and its number."""
    if bar.value is None:
        panel.write(0.01 * panel.span, y, "no value", **MISSING)
        return
    look = bar.look
    panel.axes.barh(
        y,
        [bar.value],
        height=0.74,
        color=look.colour,
        hatch=look.hatch,
        edgecolor=INK,
        linewidth=0.5,
    )
    if bar.ends is not None:
        panel.axes.plot(
            bar.ends,
            [y, y],
            color=INK,
            linewidth=1.2,
            marker="|",
            markersize=4,
            markeredgewidth=1,
        )
    end = max(0.0, bar.value, *(bar.ends or ()))
    panel.write(end + 0.015 * panel.span, y, bar.text)

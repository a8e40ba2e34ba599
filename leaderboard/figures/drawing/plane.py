"""Points over two axes by matplotlib."""

from __future__ import annotations

from matplotlib import figure as mpl
from matplotlib.axes import Axes

from ..plane import Plane, PlaneCurve
from .style import GRID, MUTED, Heading, Style, add_legend, mark, new_figure


def draw_plane(shape: Plane, heading: Heading) -> mpl.Figure:
    """Points with their intervals, joined by lines if the plane is of percentages."""
    legend_rows = (len(shape.curves) + 1) // 2
    figure = new_figure(heading, 2.7 + 0.18 * legend_rows)
    axes = figure.add_subplot()
    if shape.diagonal:
        axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    for curve in shape.curves:
        if shape.joined:
            _draw_line(axes, curve)
        _draw_points(axes, curve)
    if shape.joined:
        axes.set(xlim=(-2, 102), ylim=(-2, 102))
    elif shape.across.logarithmic:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, shape.across.high)
    axes.set(xlabel=shape.across.title, ylabel=shape.up.title)
    axes.grid(True, color=GRID)
    styles = [_legend_style(curve, shape.joined) for curve in shape.curves]
    add_legend(figure, [curve.label for curve in shape.curves], styles)
    return figure


def _draw_line(axes: Axes, curve: PlaneCurve) -> None:
    x = [point.x for point in curve.points]
    y = [point.y for point in curve.points]
    axes.plot(x, y, color=curve.look.colour, linestyle=curve.look.line, linewidth=1.0)


def _draw_points(axes: Axes, curve: PlaneCurve) -> None:
    """Draw the dots of a curve, each above its intervals."""
    for point in curve.points:
        ends = point.ends or (point.y, point.y)
        axes.plot([point.x, point.x], ends, color=curve.look.colour, linewidth=1.0)
        if point.ends_across is not None:
            y = [point.y, point.y]
            axes.plot(point.ends_across, y, color=curve.look.colour, linewidth=1.0)
        dot = mark(curve.look, 1.4 * point.radius)
        axes.plot([point.x], [point.y], linestyle="none", **dot)


def _legend_style(curve: PlaneCurve, joined: bool) -> Style:
    if joined:
        return mark(curve.look, 6, linestyle=curve.look.line)
    return mark(curve.look, 7)

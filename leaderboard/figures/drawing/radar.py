"""Radar charts by matplotlib."""

from __future__ import annotations

import math
from typing import Literal, cast

from matplotlib import figure as mpl
from matplotlib.projections.polar import PolarAxes

from ..labels import wrapped
from ..radar import Radar
from .style import GRID, INK, MUTED, PAPER, Heading, Style, add_legend, mark, new_figure

_RINGS = (0.25, 0.5, 0.75, 1)
"""Shares of the radius."""


def draw_radar(shape: Radar, heading: Heading) -> mpl.Figure:
    """Closed curves on polar axes."""
    legend_rows = math.ceil(len(shape.curves) / 2)
    figure = new_figure(heading, 4.3 + 0.19 * legend_rows)
    axes = cast(PolarAxes, figure.add_subplot(projection="polar"))
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    styles = _draw_curves(axes, shape)
    _label(axes, shape)
    add_legend(figure, [curve.label for curve in shape.curves], styles)
    return figure


def _draw_curves(axes: PolarAxes, shape: Radar) -> list[Style]:
    """Draw the curves; return their styles."""
    angles = shape.angles
    styles = []
    for curve in shape.curves:
        radii = [math.nan if value is None else value for value in curve.values]
        look = curve.look
        style = mark(look, 5, markeredgecolor=PAPER, linestyle=look.line, linewidth=1.5)
        axes.plot([*angles, angles[0]], [*radii, radii[0]], **style)
        styles.append(style)
    return styles


def _label(axes: PolarAxes, shape: Radar) -> None:
    """Draw the rings with their values, and the names of the axes around them."""
    angles = shape.angles
    axes.set_ylim(0, shape.rim)
    rings = [shape.rim * share for share in _RINGS]
    axes.set_yticks(rings, [f"{ring:g}" for ring in rings], size=6.5, color=MUTED)
    axes.set_rlabel_position(math.degrees(angles[1]) / 2)
    axes.grid(True, color=GRID)
    axes.spines["polar"].set_color(GRID)
    axes.set_xticks(angles, [wrapped(name, 22) for name in shape.axes], size=7.5, color=INK)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        label.set_horizontalalignment(_alignment(angle))
    axes.set_xlabel(shape.unit, size=7.5)


def _alignment(angle: float) -> Literal["left", "center", "right"]:
    """The alignment of a label that is outside the end of its axis."""
    side = round(math.sin(angle), 6)
    if side == 0:
        return "center"
    return "left" if side > 0 else "right"

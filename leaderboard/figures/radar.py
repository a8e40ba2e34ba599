"""Radar: an axis for each column, a closed line for each model, with a gap for a missing value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, cast

from matplotlib.lines import Line2D
from matplotlib.projections.polar import PolarAxes

from ..board import BoardColumn, BoardPlot
from .canvas import Drawing, new_figure
from .chosen import Chosen
from .looks import GRID, INK, MUTED, PAPER, Drawn, listed, wrapped
from .values import all_values, axis_title, rim_of


def draw(plot: BoardPlot, chosen: Chosen, subtitle: Sequence[str]) -> Drawing:
    """All axes have one scale, from 0 in the middle."""
    rows = math.ceil(len(chosen.models) / 2)
    figure = new_figure(plot.title, 4.3 + 0.19 * rows, lines=subtitle)
    axes = cast(PolarAxes, figure.add_subplot(projection="polar"))
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    angles = [2 * math.pi * place / len(chosen.columns) for place in range(len(chosen.columns))]
    handles = []
    for one in chosen.models:
        values = [math.nan if (value := one.value(column)) is None else value for column in chosen.columns]
        how: Drawn = {**one.look.mark(5), "markeredgecolor": PAPER, "linestyle": one.look.line, "linewidth": 1.5}
        axes.plot([*angles, angles[0]], [*values, values[0]], **how)
        handles.append(Line2D([], [], **how))
    _frame(axes, angles, chosen.columns, max(all_values(chosen)))
    legend = figure.legend(handles, [str(n) for n in range(len(handles))], loc="outside lower center", ncols=2)
    for text, one in zip(legend.get_texts(), chosen.models, strict=True):
        text.set_text(one.label)  # given to `legend`, labels that begin with an underscore are left out
    return Drawing(figure, plot.title, _alt(chosen))


def _frame(axes: PolarAxes, angles: Sequence[float], columns: Sequence[BoardColumn], highest: float) -> None:
    top = rim_of(columns, highest)
    axes.set_ylim(0, top)
    axes.set_yticks([top * share for share in (0.25, 0.5, 0.75, 1)])
    axes.set_yticklabels([f"{top * share:g}" for share in (0.25, 0.5, 0.75, 1)], size=6.5, color=MUTED)
    axes.set_rlabel_position(math.degrees(angles[1]) / 2)
    axes.grid(True, color=GRID)
    axes.spines["polar"].set_color(GRID)
    axes.set_xticks(angles)
    names = [column.label if column.higher_is_better else f"{column.label} (lower is better)" for column in columns]
    axes.set_xticklabels([wrapped(name, 22) for name in names], size=7.5, color=INK)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        label.set_horizontalalignment(_side(angle))
    axes.set_xlabel(axis_title(columns), size=7.5)


def _side(angle: float) -> Literal["left", "center", "right"]:
    if math.isclose(math.sin(angle), 0, abs_tol=1e-6):
        return "center"
    return "left" if math.sin(angle) > 0 else "right"


def _alt(chosen: Chosen) -> str:
    which = f" for {chosen.extent}" if chosen.extent else f" for {len(chosen.models)} models"
    axes = f"Radar chart{which} with {len(chosen.columns)} axes, from 0 in the middle."
    summary = listed([chosen.summary(column) for column in chosen.columns])
    return f"{axes} {summary}.{chosen.omissions()}"

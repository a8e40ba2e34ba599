"""Score against cost: a mark for each model, with its score upwards and what a sample takes to the right."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from ..board import BenchmarkBoard, Board, BoardPlot
from ..numbers import UNITS
from ..usage import amount
from .canvas import Drawing, new_figure
from .looks import GRID, listed
from .values import cost_points, is_wide

_SIZE = 7


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """The models of ``benchmark.usage`` with the score of the plot's column and its interval. None without any."""
    points = cost_points(board, benchmark, plot)
    if points is None:
        return None
    measure, column, drawn, extent, absent = points
    incomplete = any(one.complete(column) is None for one, _ in drawn)
    lines = [*subtitle, *(["Some values are incomplete (*)."] if incomplete else [])]
    figure = new_figure(f"{plot.title}{extent}", 2.6 + 0.18 * ((len(drawn) + 1) // 2), lines=lines)
    axes = figure.add_subplot()
    for one, value in drawn:
        score = one.value(column)
        if score is not None:  # a ranked run has one
            axes.plot([value] * 2, one.ends(column) or (score, score), color=one.look.colour, linewidth=1.1)
            axes.plot([value], [score], linestyle="none", **one.look.mark(_SIZE))
    if is_wide([value for _, value in drawn]):
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.08 * max(value for _, value in drawn) or 1.0)
    what = f"{measure.label.lower()} ({measure.unit})"
    axes.set_xlabel(what)
    axes.set_ylabel(f"{column.label} ({UNITS[column.unit]})")
    axes.grid(True, color=GRID)
    handles = [Line2D([], [], linestyle="none", **one.look.mark(_SIZE)) for one, _ in drawn]
    names = [one.label + "*" * (one.complete(column) is None) for one, _ in drawn]
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    numbers = listed([f"{one.described(column)} at {amount(value)}" for one, value in drawn])
    missing = f" Without a value: {listed(absent)}." if absent else ""
    alt = f"Scatter plot{extent}. {column.label} against {what}: {numbers}.{missing}"
    return Drawing(figure, f"{plot.title}{extent}", alt)

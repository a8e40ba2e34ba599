"""Score against cost: a mark for each model, with its score upwards and what a sample takes to the right."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from ..board import BenchmarkBoard, Board, BoardPlot
from ..numbers import UNITS
from ..usage import amount, plotted
from .canvas import GRID, LOOKS, MOST_MODELS, Drawing, listed, new_figure
from .chosen import Shown, labelled_best

_SIZE = 7
_WIDE = 20.0
"""Ratio of the largest to the smallest value from which the axis is logarithmic."""


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """The models of ``benchmark.usage`` with the score of the plot's column and its interval. None without any."""
    measure = plotted([(one.usage, one.cost) for one in benchmark.usage])
    columns = (column for table in benchmark.tables for column in table.columns)
    column = next((one for one in columns if one.key in plot.columns), None)
    if measure is None or column is None:
        return None
    used = {one.model: one for one in benchmark.usage}
    values = {model: measure.value(one.usage, one.cost) for model, one in used.items()}
    labels = labelled_best(board, benchmark, used, 26)
    known = [(model, value) for model in labels if (value := values[model]) is not None]
    drawn = [
        (Shown(labels[model], look, {column.key: used[model].score}), value)
        for look, (model, value) in zip(LOOKS, known[:MOST_MODELS], strict=False)
    ]
    incomplete = any(one.complete(column) is None for one, _ in drawn)
    extent = f" ({len(drawn)} of {len(known)} models)" if len(drawn) < len(known) else ""
    lines = [*subtitle, *(["Some values are incomplete (*)."] if incomplete else [])]
    figure = new_figure(f"{plot.title}{extent}", 2.6 + 0.18 * ((len(drawn) + 1) // 2), lines=lines)
    axes = figure.add_subplot()
    for one, value in drawn:
        score = one.value(column)
        if score is not None:  # a ranked run has one
            axes.plot([value] * 2, one.ends(column) or (score, score), color=one.look.colour, linewidth=1.1)
            axes.plot([value], [score], linestyle="none", **one.look.mark(_SIZE))
    low, high = min(value for _, value in drawn), max(value for _, value in drawn)
    if low > 0 and high > _WIDE * low:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.08 * high or 1.0)
    what = f"{measure.label.lower()} ({measure.unit})"
    axes.set_xlabel(what)
    axes.set_ylabel(f"{column.label} ({UNITS[column.unit]})")
    axes.grid(True, color=GRID)
    handles = [Line2D([], [], linestyle="none", **one.look.mark(_SIZE)) for one, _ in drawn]
    names = [one.label + "*" * (one.complete(column) is None) for one, _ in drawn]
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    numbers = listed([f"{one.described(column)} at {amount(value)}" for one, value in drawn])
    absent = [label for model, label in labels.items() if values[model] is None]
    missing = f" Without a value: {listed(absent)}." if absent else ""
    alt = f"Scatter plot{extent}. {column.label} against {what}: {numbers}.{missing}"
    return Drawing(figure, f"{plot.title}{extent}", alt)

"""Accuracy by confidence (a reliability diagram) and by coverage: a line for each model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..board import BenchmarkBoard, Board, BoardPlot
from .canvas import Drawing, new_figure
from .looks import GRID, MUTED
from .values import Series, coverage_words, reliability_series, reliability_words


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """Accuracy against the mean confidence of each bin, with intervals. None without a confidence."""
    series, extent = reliability_series(board, benchmark, plot)
    if not series:
        return None
    figure, axes = _axes(plot.title + extent, subtitle, series)
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    for _, look, one in series:
        bins = one.reliability.bins
        answers = sum(each.answers for each in bins)
        places, heights = [100 * each.confidence for each in bins], [100 * each.accuracy for each in bins]
        axes.plot(places, heights, color=look.colour, linestyle=look.line, linewidth=1.0)
        for place, height, each in zip(places, heights, bins, strict=True):
            if each.interval is not None:
                axes.plot([place] * 2, [100 * end for end in each.interval], color=look.colour, linewidth=0.9)
            axes.plot([place], [height], linestyle="none", **look.mark(3 + 7 * math.sqrt(each.answers / answers)))
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.set_xlabel("confidence (%)")
    return Drawing(figure, plot.title + extent, reliability_words(series))


def draw_coverage(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """Accuracy of the most confident answers against their share. None without a confidence."""
    series, extent = reliability_series(board, benchmark, plot)
    if not series:
        return None
    figure, axes = _axes(plot.title + extent, subtitle, series)
    for _, look, one in series:
        curve = [100 * accuracy for accuracy in one.reliability.curve]
        shares = [100 * place / len(curve) for place in range(1, len(curve) + 1)]
        axes.plot(shares, curve, color=look.colour, linestyle=look.line, linewidth=1.1)
        axes.plot(shares, curve, linestyle="none", **look.mark(5))
    axes.set_xlim(0, 103)
    axes.set_xlabel("share of the answers, most confident first (%)")
    return Drawing(figure, plot.title + extent, coverage_words(series))


def _axes(title: str, subtitle: Sequence[str], series: Series) -> tuple[Figure, Axes]:
    figure = new_figure(title, 3.0 + 0.18 * ((len(series) + 1) // 2), lines=subtitle)
    axes = figure.add_subplot()
    axes.set_ylabel("accuracy (%)")
    axes.grid(True, color=GRID)
    handles = [Line2D([], [], linestyle=look.line, **look.mark(6)) for _, look, _ in series]
    figure.legend(handles, [label for label, _, _ in series], loc="outside lower center", ncols=2)
    return figure, axes

"""The figures of a benchmark's plots, and the paths of their files."""

from __future__ import annotations

from collections.abc import Iterable

from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import safe_name
from .confidence_figure import confidence_figure
from .cost_figure import cost_figure
from .figure import Figure
from .latency_figure import latency_figure
from .score_figure import score_figure

_MAKERS = {
    "cost": cost_figure,
    "coverage": confidence_figure,
    "latency": latency_figure,
    "reliability": confidence_figure,
}
"""By kind of plot; all other plots show scores of tables."""
_IN_TABLES = ("letters", "timeline")
"""Kinds of plots that pages draw into their tables."""


def figures_of(board: Board, benchmark: BenchmarkBoard) -> dict[str, Figure]:
    """The figures of the benchmark by the name of their plot.

    Plots for which no model has a value, and those that pages draw into tables, have no figure.
    """
    figures = {}
    for plot in benchmark.plots:
        if plot.kind in _IN_TABLES:
            continue
        make = _MAKERS.get(plot.kind, score_figure)
        figure = make(board, benchmark, plot)
        if figure is not None:
            figures[plot.name] = figure
    return figures


def figure_files(benchmark: BenchmarkBoard, plot: str, formats: Iterable[str]) -> dict[str, str]:
    """The paths of a figure's files on a site, by format."""
    stem = f"figures/{safe_name(benchmark.name)}/{safe_name(plot)}"
    return {name: f"{stem}.{name}" for name in formats}

"""Figures of a board as files, by matplotlib: SVG with a dark mode, PNG and PDF, with reproducible
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import figure as mpl

from ..schema.board import Board
from ..schema.plot_data import FORMATS
from .bars import BarChart
from .drawing.bars import draw_bars
from .drawing.dumbbells import draw_dumbbells
from .drawing.heat_map import draw_heat_map
from .drawing.images import images
from .drawing.plane import draw_plane
from .drawing.radar import draw_radar
from .drawing.style import Heading, drawing
from .dumbbells import DumbbellChart
from .figure import Figure, Shape
from .heat_map import HeatMap
from .plots import figure_files, figures_of
from .radar import Radar

_DEMONSTRATION = "Miniature data: a demonstration, not a benchmark result."
_INCOMPLETE = "Some values are incomplete (*)."


def draw_all(
    board: Board, site: Path, formats: Sequence[str] = FORMATS
) -> dict[tuple[str, str], dict[str, str]]:
    """Draw every plot of ``board`` to ``site/figures/<benchmark>/<plot>.<format>``.

    A plot for which no model has a value is neither drawn nor returned. The same board gives the
    same bytes.

    Returns:
        The paths in ``site`` by format, by benchmark and plot.
    """
    paths: dict[tuple[str, str], dict[str, str]] = {}
    for benchmark in board.benchmarks:
        for plot_name, figure in figures_of(board, benchmark).items():
            files = figure_files(benchmark, plot_name, formats)
            for name, content in draw(board, figure, formats).items():
                path = site / files[name]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            paths[benchmark.name, plot_name] = files
    return paths


def draw(board: Board, figure: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """A figure as the content of a file in each format."""
    remarks = []
    if board.demonstration:
        remarks.append(_DEMONSTRATION)
    if figure.incomplete:
        remarks.append(_INCOMPLETE)
    with drawing():
        drawn = _drawn(figure.shape, Heading(figure.title, remarks))
        return images(drawn, figure.title, formats)


def _drawn(shape: Shape, heading: Heading) -> mpl.Figure:
    """A shape as a figure of matplotlib."""
    if isinstance(shape, BarChart):
        return draw_bars(shape, heading)
    if isinstance(shape, DumbbellChart):
        return draw_dumbbells(shape, heading)
    if isinstance(shape, HeatMap):
        return draw_heat_map(shape, heading)
    if isinstance(shape, Radar):
        return draw_radar(shape, heading)
    return draw_plane(shape, heading)

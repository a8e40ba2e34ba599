"""Figures of a board as files, by matplotlib: SVG with a dark mode, PNG and PDF, with reproducible bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..board import FORMATS, BenchmarkBoard, Board, BoardPlot
from ..numbers import safe_name
from . import bars, cost, heatmap, letters, paired, radar, reliability, timeline
from .canvas import Drawing, drawing, save
from .chosen import choose
from .looks import MOST_MODELS
from .values import is_radar


@dataclass(frozen=True)
class FigureFiles:
    """A figure as files: paths by format, relative to the directory they were written to; ``alt`` describes it in
    words."""

    files: Mapping[str, str]
    title: str
    alt: str


def draw_all(
    board: Board, directory: Path, formats: Sequence[str] = FORMATS, only: tuple[str, str] | None = None
) -> dict[tuple[str, str], FigureFiles]:
    """Draw every plot of ``board`` to ``directory/<benchmark>/<plot>.<format>``; return files by benchmark and plot.

    A plot for which no model has a value is neither drawn nor returned. The same board gives the same bytes.
    ``only`` names a benchmark and its plot to draw no other.
    """
    found = {}
    with drawing():
        for benchmark, plot in [(one, plot) for one in board.benchmarks for plot in one.plots]:
            if only not in (None, (benchmark.name, plot.name)):
                continue
            drawn = _drawn(board, benchmark, plot)
            if drawn is None:
                continue
            files = save(drawn, directory, f"{safe_name(benchmark.name)}/{safe_name(plot.name)}", formats)
            found[benchmark.name, plot.name] = FigureFiles(files, drawn.title, drawn.alt)
    return found


def _drawn(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Drawing | None:
    subtitle = ["Miniature data: a demonstration, not a benchmark result."] if board.demonstration else []
    other = {
        "cost": cost.draw,
        "coverage": reliability.draw_coverage,
        "letters": letters.draw,
        "reliability": reliability.draw,
        "timeline": timeline.draw,
    }.get(plot.kind)
    drawn = other(board, benchmark, plot, subtitle) if other else _drawn_scores(board, benchmark, plot, subtitle)
    return drawn and replace(drawn, alt=" ".join((*subtitle, drawn.alt)))


def _drawn_scores(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: list[str]) -> Drawing | None:
    heat = plot.kind == "heatmap"
    chosen = choose(board, benchmark, plot).in_order() if heat else choose(board, benchmark, plot, MOST_MODELS)
    if not chosen.models or not chosen.columns:
        return None
    if chosen.incomplete:
        subtitle = [*subtitle, "Some values are incomplete (*)."]
    if chosen.extent:
        plot = plot.model_copy(update={"title": f"{plot.title} ({chosen.extent})"})
    if heat:
        return heatmap.draw(plot, chosen, subtitle)
    if plot.kind == "paired":
        return paired.draw(plot, chosen, subtitle)
    if plot.kind == "radar" and is_radar(chosen):
        return radar.draw(plot, chosen, subtitle)
    return bars.draw(plot, chosen, subtitle, board.confidence)

"""All figures of a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtasks.errors import UsageError

from ..board import BenchmarkBoard, Board, BoardPlot
from ..exports.names import safe_name
from . import bars, heatmap, letters, paired, radar, timeline
from .canvas import Drawing, drawing, save
from .chosen import choose
from .style import MOST_MODELS

__all__ = ["FORMATS", "FigureFiles", "draw_all"]

FORMATS = ("svg", "png", "pdf")
INCOMPLETE = "Some values rest on too few verdicts (*)."


@dataclass(frozen=True)
class FigureFiles:
    """A figure as files: paths relative to where they were written, by format; ``alt`` says what it shows, and
    ``width`` and ``height`` are those of the SVG in CSS pixels."""

    files: Mapping[str, str]
    title: str
    alt: str
    width: int
    height: int


def draw_all(board: Board, directory: Path, formats: Sequence[str] = FORMATS) -> dict[tuple[str, str], FigureFiles]:
    """Draw every plot of ``board`` to ``directory/<benchmark>/<plot>.<format>``; the files by benchmark and plot.

    A plot for which no model has a value is not drawn and not in the answer. The same board gives the same bytes.

    Raises:
        UsageError: a format is unknown.
    """
    unknown = [one for one in formats if one not in FORMATS]
    if unknown:
        raise UsageError(f"figure format {unknown[0]!r} is unknown; choose from {', '.join(FORMATS)}.")
    found = {}
    with drawing():
        for benchmark in board.benchmarks:
            for plot in benchmark.plots:
                drawn = _drawn(board, benchmark, plot)
                if drawn is None:
                    continue
                stem = f"{safe_name(benchmark.name)}/{safe_name(plot.name)}"
                files = save(drawn, directory, stem, formats)
                width, height = (round(96 * inches) for inches in drawn.figure.get_size_inches())
                found[benchmark.name, plot.name] = FigureFiles(files, drawn.title, drawn.alt, width, height)
    return found


def _drawn(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Drawing | None:
    subtitle = ["Miniature data: a demonstration, not a benchmark result."] if board.demonstration else []
    if plot.kind == "letters":
        drawn = letters.draw(board, benchmark, plot, subtitle)
    elif plot.kind == "timeline":
        drawn = timeline.draw(board, benchmark, plot, subtitle)
    else:
        drawn = _of_models(board, benchmark, plot, subtitle)
    if drawn is None or not board.demonstration:
        return drawn
    return replace(drawn, alt=f"{subtitle[0]} {drawn.alt}")


def _of_models(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    heat = plot.kind == "heatmap"
    chosen = choose(board, benchmark, plot, None).in_order() if heat else choose(board, benchmark, plot, MOST_MODELS)
    if not chosen.models or not chosen.columns:
        return None
    if chosen.incomplete:
        subtitle = [*subtitle, INCOMPLETE]
    if chosen.extent:
        plot = plot.model_copy(update={"title": f"{plot.title} ({chosen.extent})"})
    if heat:
        return heatmap.draw(plot, chosen, subtitle)
    if plot.kind == "paired":
        return paired.draw(plot, chosen, subtitle)
    if plot.kind == "radar" and radar.possible(chosen):
        return radar.draw(plot, chosen, subtitle)
    return bars.draw(plot, chosen, subtitle, float(board.confidence))

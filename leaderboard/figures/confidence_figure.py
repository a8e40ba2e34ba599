"""Figures of stated confidence: accuracy by confidence, and by coverage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from medtasks.scoring.scores import Reliability

from ..board.model_order import model_order
from ..schema.board import BenchmarkBoard, Board
from ..schema.plot_data import BoardPlot
from .axes import Axis
from .figure import Figure, extent_text, model_labels
from .labels import joined
from .looks import LOOKS
from .plane import Plane, PlaneCurve, Point

_TICKS = tuple((float(percent), str(percent)) for percent in range(0, 101, 20))
_ACCURACY = Axis("accuracy (%)", 0.0, 100.0, _TICKS)
_COVERAGE_DOT = 3.0
"""Radius of a point of a coverage curve."""


def confidence_figure(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """Accuracy by confidence or by coverage, with a curve for each of the first models.

    None if no answer has a confidence.
    """
    curve_kind = _CURVE_KINDS[plot.kind]
    reliability = _reliability_by_model(benchmark, plot)
    order = [model for model in model_order(benchmark) if model in reliability]
    labels = model_labels(board, order)
    curves = []
    descriptions = []
    for look, (model, label) in zip(LOOKS, labels.items(), strict=False):
        points = curve_kind.points(reliability[model])
        curves.append(PlaneCurve(label, look, points))
        descriptions.append(f"{label}: {curve_kind.words(points)}")
    if not curves:
        return None
    across = replace(_ACCURACY, title=curve_kind.axis_title)
    plane = Plane(across, _ACCURACY, curves, joined=True, diagonal=curve_kind.diagonal)
    return Figure(
        plot=plot,
        shape=plane,
        extent=extent_text(curves, labels),
        incomplete=False,
        omitted="",
        alt=f"Line chart of accuracy by {curve_kind.name}. {joined(descriptions)}.",
    )


def _reliability_by_model(benchmark: BenchmarkBoard, plot: BoardPlot) -> dict[str, Reliability]:
    """The models' accuracy by confidence in the task of the plot's columns."""
    tasks: set[str] = set()
    for table in benchmark.tables:
        tasks.update(column.task for column in table.columns if column.key in plot.columns)
    return {
        entry.model: entry.reliability for entry in benchmark.reliability if entry.task in tasks
    }


def _reliability_points(reliability: Reliability) -> list[Point]:
    """A point for each bin of confidence, the larger the more answers the bin has."""
    answers = sum(confidence_bin.answers for confidence_bin in reliability.bins)
    points = []
    for confidence_bin in reliability.bins:
        ends = None
        if confidence_bin.interval is not None:
            low, high = confidence_bin.interval
            ends = (100 * low, 100 * high)
        x, y = 100 * confidence_bin.confidence, 100 * confidence_bin.accuracy
        radius = 2 + 5 * math.sqrt(confidence_bin.answers / answers)
        points.append(Point(x, y, radius, ends))
    return points


def _reliability_words(points: Sequence[Point]) -> str:
    return ", ".join(f"{point.x:.0f} % sure, {point.y:.0f} % right" for point in points)


def _coverage_points(reliability: Reliability) -> list[Point]:
    """A point for each share of the answers, the most confident first."""
    count = len(reliability.curve)
    points = []
    for number, accuracy in enumerate(reliability.curve, start=1):
        points.append(Point(100 * number / count, 100 * accuracy, _COVERAGE_DOT))
    return points


def _coverage_words(points: Sequence[Point]) -> str:
    tenth, whole = points[0], points[-1]
    return f"{tenth.y:.0f} % right among the most confident tenth, {whole.y:.0f} % among all"


@dataclass(frozen=True)
class _CurveKind:
    """What accuracy is drawn by: the points of a model, and their description in words."""

    name: str
    axis_title: str
    diagonal: bool
    points: Callable[[Reliability], list[Point]]
    words: Callable[[Sequence[Point]], str]


_CURVE_KINDS = {
    "coverage": _CurveKind(
        name="coverage",
        axis_title="share of the answers, most confident first (%)",
        diagonal=False,
        points=_coverage_points,
        words=_coverage_words,
    ),
    "reliability": _CurveKind(
        name="confidence",
        axis_title="confidence (%)",
        diagonal=True,
        points=_reliability_points,
        words=_reliability_words,
    ),
}
"""By kind of plot."""

"""Radar charts: the models as closed curves over columns of one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .drawn_scores import ColumnScores, axis_title, scale_of, summaries
from .labels import short
from .looks import Look

RADIUS = 140
"""Radius on a page, in units of the SVG."""
FEWEST_AXES = 3
"""Fewer columns enclose no area."""
FEWEST_CURVES = 3
"""One or two models are compared more easily as bars."""
_LABEL_GAP = 8
"""Distance of a label from the end of its axis."""


@dataclass(frozen=True)
class RadarCurve:
    """A model's value on each axis; None leaves a gap."""

    label: str
    look: Look
    values: Sequence[float | None]


@dataclass(frozen=True)
class Spoke:
    """An axis of a radar on a page: its end, and its label with place and SVG text anchor."""

    x: float
    y: float
    label: str
    label_x: float
    label_y: float
    anchor: str


@dataclass(frozen=True)
class Radar:
    """Closed curves around a centre, on one scale from 0 to ``rim``; the first axis points up.

    On a page, coordinates are from the centre, y downwards.
    """

    kind: ClassVar[str] = "radar"
    axes: Sequence[str]
    rim: float
    unit: str
    curves: Sequence[RadarCurve]

    @property
    def angles(self) -> list[float]:
        """The angles of the axes, clockwise from the top."""
        count = len(self.axes)
        return [2 * math.pi * number / count for number in range(count)]

    @property
    def spokes(self) -> list[Spoke]:
        """The axes as a page draws them."""
        spokes = []
        for angle, label in zip(self.angles, self.axes, strict=True):
            x, y = _point_at(RADIUS, angle)
            label_x, label_y = _point_at(RADIUS + _LABEL_GAP, angle)
            # labels above the centre end at their point, those below begin there
            baseline = label_y + 4 - 4 * math.cos(angle)
            spokes.append(Spoke(x, y, short(label, 30), label_x, baseline, _anchor(angle)))
        return spokes

    def dots(self, values: Sequence[float | None]) -> list[tuple[float, float]]:
        """The points of a curve, without its gaps."""
        return [point for point in self._points(values) if point is not None]

    def path(self, values: Sequence[float | None]) -> str:
        """The SVG path data of a closed curve, interrupted by its gaps."""
        points = self._points(values)
        path = ""
        command = "M"
        for point in (*points, points[0]):
            if point is None:
                command = "M"
                continue
            path += f"{command}{point[0]} {point[1]}"
            command = "L"
        return path

    def _points(self, values: Sequence[float | None]) -> list[tuple[float, float] | None]:
        """The point of each value on its axis; None for a gap."""
        points: list[tuple[float, float] | None] = []
        for angle, value in zip(self.angles, values, strict=True):
            if value is None:
                points.append(None)
            else:
                points.append(_point_at(RADIUS * value / self.rim, angle))
        return points


def _point_at(radius: float, angle: float) -> tuple[float, float]:
    return round(radius * math.sin(angle), 1), round(-radius * math.cos(angle), 1)


def _anchor(angle: float) -> str:
    """The SVG text anchor of a label that is outside the end of its axis."""
    side = math.sin(angle)
    if abs(side) < 1e-6:
        return "middle"
    return "start" if side > 0 else "end"


def radar(series: Sequence[ColumnScores]) -> Radar | None:
    """Curves of the models over the columns.

    None with too few models or columns, if a column is signed or has another scale, or if a value
    is below 0: a radar has one scale from 0 in the middle.
    """
    columns = [entry.column for entry in series]
    scales = {scale_of(column) for column in columns}
    is_signed = any(column.signed for column in columns)
    curves = _curves(series)
    values: list[float] = []
    for curve in curves:
        values += [value for value in curve.values if value is not None]
    if len(columns) < FEWEST_AXES or len(curves) < FEWEST_CURVES:
        return None
    if is_signed or len(scales) > 1 or min(values) < 0:
        return None
    rim = max(values)
    if "percent" in scales:
        rim = max(rim, min(100.0, 20.0 * math.ceil(rim / 20)))
    names = []
    for column in columns:
        hint = "" if column.higher_is_better else " (lower is better)"
        names.append(f"{column.label}{hint}")
    return Radar(names, rim or 1.0, axis_title(columns), curves)


def _curves(series: Sequence[ColumnScores]) -> list[RadarCurve]:
    """A curve for each model."""
    curves = []
    for scores in zip(*(entry.scores for entry in series), strict=True):
        values = [score.value for score in scores]
        curves.append(RadarCurve(scores[0].label, scores[0].look, values))
    return curves


def radar_in_words(chart: Radar, series: Sequence[ColumnScores], extent: str) -> str:
    """The description of a radar: the best and the last model on each axis."""
    which = extent or f"{len(chart.curves)} models"
    axes = f"{len(chart.axes)} axes, from 0 in the middle"
    return f"Radar chart for {which} with {axes}. {summaries(series)}."

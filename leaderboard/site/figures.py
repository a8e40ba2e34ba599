"""Geometry of the figures drawn on pages; what they show is that of the figures that can be downloaded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..board.board import Timeline
from ..board.usage import amount
from ..figures.chosen import short
from ..figures.plots import Plane, Point, Radar

COLOURS = 10
"""Of a heat map."""
WIDTH, HEIGHT = 320, 220
"""Of the area of a plane."""
RADIUS = 140
"""Of a radar."""


def heat_colour(good: float) -> int:
    """The number of a colour of heat maps, for 0 (worst) to 1 (best)."""
    return min(int(COLOURS * good), COLOURS - 1)


class PlaneScale(NamedTuple):
    """Places on a plane, whose axes have ``across_ticks`` and ``up_ticks``: values with their texts."""

    wide: bool
    across: tuple[float, float]
    up: tuple[float, float]
    across_ticks: Sequence[tuple[float, str]]
    up_ticks: Sequence[tuple[float, str]]

    def x(self, value: float) -> float:
        low, high = self.across
        return round(WIDTH * ((math.log10(value) if self.wide else value) - low) / (high - low), 1)

    def y(self, value: float) -> float:
        low, high = self.up
        return round(HEIGHT * (1 - (value - low) / (high - low)), 1)

    def path(self, points: Sequence[Point], joined: bool) -> str:
        """Path data: the line through the points, and their intervals."""
        line = "M" + "L".join(f"{self.x(one.x)} {self.y(one.y)}" for one in points) if joined else ""
        ends = [f"M{self.x(one.x)} {self.y(one.ends[0])}V{self.y(one.ends[1])}" for one in points if one.ends]
        return "".join((line, *ends))


def plane_scale(plane: Plane) -> PlaneScale:
    """The scale of a plane: 0 to 100 percent, or all costs and scores, with 0 unless costs are logarithmic."""
    if plane.percent:
        ticks = [(float(share), f"{share}") for share in range(0, 101, 20)]
        return PlaneScale(False, (0.0, 100.0), (0.0, 100.0), ticks, ticks)
    wide, costs = plane.wide, [point.x for point in plane.points]
    low, high = (math.log10(min(costs)), math.log10(max(costs))) if wide else (0.0, max(costs) or 1.0)
    room = 0.06 * (high - low) or 1.0
    low, high = low - room * wide, high + room
    marks = [10 ** (low + (high - low) * share) if wide else high * share for share in (0.1, 0.5, 0.9)]
    scores = [score for point in plane.points for score in (point.y, *(point.ends or ()))]
    bottom, top = min(0.0, *scores), max(scores) or 1.0
    heights = [bottom + (top - bottom) * share for share in (0, 0.5, 1)]
    up = (bottom, top + 0.05 * (top - bottom))
    return PlaneScale(wide, (low, high), up, [(x, amount(x) or "0") for x in marks], [(y, f"{y:.3g}") for y in heights])


def radar_axes(radar: Radar) -> list[tuple[float, float, str, float, float, str]]:
    """By axis its end, and its label with the label's place and anchor."""
    found = []
    for angle, label in zip(radar.angles, radar.axes, strict=True):
        side = math.sin(angle)
        anchor = "middle" if abs(side) < 1e-6 else "start" if side > 0 else "end"
        x, y = _around(RADIUS + 8, angle)
        found.append((*_around(RADIUS, angle), short(label, 30), x, y + 4 - 4 * math.cos(angle), anchor))
    return found


def radar_curve(radar: Radar, values: Sequence[float | None]) -> tuple[str, list[tuple[float, float]]]:
    """Path data of a closed curve with its gaps, and its dots."""
    places = [
        None if value is None else _around(RADIUS * value / radar.rim, angle)
        for angle, value in zip(radar.angles, values, strict=True)
    ]
    path, pen = "", "M"
    for place in (*places, places[0]):
        path += f"{pen}{place[0]} {place[1]}" if place else ""
        pen = "L" if place else "M"
    return path, [place for place in places if place]


def _around(radius: float, angle: float) -> tuple[float, float]:
    return round(radius * math.sin(angle), 1), round(-radius * math.cos(angle), 1)


class TimeAxis(NamedTuple):
    """The time axis of a streaming item; places are percentages of its width."""

    start: float
    end: float

    def place(self, time: float) -> str:
        return f"{2 + 96 * (time - self.start) / ((self.end - self.start) or 1):.2f}%"

    def width(self, length: float) -> str:
        return f"{max(0.4, 96 * length / ((self.end - self.start) or 1)):.2f}%"


def time_axis(lines: Sequence[Timeline], further: Iterable[float] = ()) -> TimeAxis:
    """The axis of the models' rounds of one item, of its question and t*, and of ``further`` times."""
    first = lines[0]
    times = [first.query_time, *further, *(one.time for line in lines for one in line.rounds)]
    if first.expected_time is not None:
        times += [first.expected_time - first.tolerance, first.expected_time + first.tolerance]
    return TimeAxis(min(times), max(times))

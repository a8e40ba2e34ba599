"""Points of models over two axes: scores against cost, accuracy by confidence or coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .axes import Axis
from .looks import Look

WIDTH, HEIGHT = 320, 220
"""Size of the area between the axes on a page, in units of the SVG."""


@dataclass(frozen=True)
class Point:
    """A dot with its radius; ``ends`` are those of the interval of ``y``, ``ends_across`` those of
    the interval of ``x``.
    """

    x: float
    y: float
    radius: float
    ends: tuple[float, float] | None = None
    ends_across: tuple[float, float] | None = None


@dataclass(frozen=True)
class PlaneCurve:
    """The points of one model."""

    label: str
    look: Look
    points: Sequence[Point]


@dataclass(frozen=True)
class Plane:
    """Curves of points over two axes.

    Points are ``joined`` in their order if both axes are in percent; ``diagonal`` draws the line on
    which the two are equal.
    """

    kind: ClassVar[str] = "plane"
    across: Axis
    up: Axis
    curves: Sequence[PlaneCurve]
    joined: bool
    diagonal: bool = False

    def x(self, value: float) -> float:
        """The position on a page of a value across, from the left."""
        return round(WIDTH * self.across.share(value), 1)

    def y(self, value: float) -> float:
        """The position on a page of a value upwards, from the top."""
        return round(HEIGHT * (1 - self.up.share(value)), 1)

    def path(self, points: Sequence[Point]) -> str:
        """The SVG path data of the line through the points and of their intervals."""
        path = ""
        if self.joined:
            path = "M" + "L".join(f"{self.x(point.x)} {self.y(point.y)}" for point in points)
        for point in points:
            if point.ends is not None:
                low, high = point.ends
                path += f"M{self.x(point.x)} {self.y(low)}V{self.y(high)}"
            if point.ends_across is not None:
                least, most = point.ends_across
                path += f"M{self.x(least)} {self.y(point.y)}H{self.x(most)}"
        return path

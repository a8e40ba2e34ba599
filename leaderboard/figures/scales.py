"""Axes of numbers: which columns share one, how far it goes, and what is written along it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes

from ..board import BoardColumn
from .style import GRID, INK, MUTED, Drawn

__all__ = ["axis_title", "by_scale", "decorate", "heading", "span", "written"]

_SCALES = {"fraction": "percent", "points": "percent", "seconds": "seconds", "score": "score"}


def by_scale(columns: Sequence[BoardColumn]) -> list[list[int]]:
    """Places of the columns that can share an axis, in the order of their first column: per cent and points can."""
    found: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        found.setdefault(_SCALES[column.unit], []).append(place)
    return list(found.values())


def axis_title(columns: Iterable[BoardColumn]) -> str:
    """What the numbers along the axis are."""
    units = {str(column.unit) for column in columns}
    names = {"fraction": "per cent", "points": "points (0 to 100)", "seconds": "seconds", "score": "score"}
    return " or ".join(name for unit, name in names.items() if unit in units)


def span(values: Iterable[float], percent: bool) -> tuple[float, float]:
    """Ends of an axis that begins at 0, and leaves room for a number behind the longest bar."""
    found = [value for value in values if math.isfinite(value)]
    high = max([0.0, *found])
    low = min([0.0, *found])
    if high == low:
        high = 1.0
    room = 0.16 * (high - low)
    # no tick may promise more than 100 per cent, but numbers need their room
    return (low - (room if low < 0 else 0.0), min(high + room, 118.0) if percent else high + room)


def heading(axes: Axes, at: float, text: str, behind: str = "") -> None:
    """The heading of a block of lines at height ``at``, and what stands at the other end of its line."""
    across = axes.get_yaxis_transform()
    left = axes.text(0, at, text, transform=across, va="center", weight="bold", size=8.5)
    right = axes.text(1, at, behind, transform=across, va="center", ha="right", size=7, color=MUTED)
    for one in (left, right):
        one.set_in_layout(False)


def written(axes: Axes, x: float, y: float, text: str, italic: bool = False) -> None:
    """A number, or why there is none, behind a bar or a mark."""
    style: Drawn = {"style": "italic", "color": MUTED} if italic else {}
    axes.text(x, y, text, va="center", size=7, **style).set_in_layout(False)


def decorate(axes: Axes, title: str) -> None:
    """A grid of vertical lines, and the title below."""
    axes.set_xlabel(title)
    axes.grid(True, axis="x", color=GRID)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", color=MUTED, labelcolor=INK)
    axes.spines["left"].set_visible(False)

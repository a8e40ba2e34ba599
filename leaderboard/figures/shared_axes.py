"""Axes that groups of bars or dumbbells share if their scores have the same scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..schema.score_tables import BoardColumn
from .axes import Axis
from .drawn_scores import axis_title, scale_of

_ROOM = 0.16
"""Room for a number beyond the longest bar, as a share of the range of values."""
_PERCENT_END = 118.0
"""End of an axis in percent: no tick follows that of 100, but a number has room."""


@dataclass(frozen=True)
class AxisContent:
    """What is drawn along an axis: numbers of one column, or of two that share its scale."""

    columns: Sequence[BoardColumn]
    numbers: Sequence[float | None]

    @property
    def scale(self) -> str:
        return scale_of(self.columns[0])


def shared_axes(contents: Sequence[AxisContent]) -> list[Axis]:
    """The axis of each content; contents of one scale share an axis and can be compared."""
    by_scale: dict[str, list[AxisContent]] = defaultdict(list)
    for content in contents:
        by_scale[content.scale].append(content)
    axes = {scale: _axis(scale, sharing) for scale, sharing in by_scale.items()}
    return [axes[content.scale] for content in contents]


def _axis(scale: str, contents: Sequence[AxisContent]) -> Axis:
    """An axis that includes 0 and all numbers, with room for text at the end of the longest bar."""
    columns: list[BoardColumn] = []
    numbers = [0.0]
    for content in contents:
        columns += content.columns
        numbers += [number for number in content.numbers if number is not None]
    low, high = min(numbers), max(numbers)
    if low == high:
        high = 1.0
    room = _ROOM * (high - low)
    high += room
    if low < 0:
        low -= room
    if scale == "percent":
        low = max(low, -_PERCENT_END)
        high = min(high, _PERCENT_END)
    return Axis(axis_title(columns), low, high)

"""Axes of figures: their ends and ticks, and where a value is drawn along them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from medtasks.metrics.timelines import Timeline


@dataclass(frozen=True)
class Axis:
    """An axis with its unit in its ``title``.

    ``ticks`` are values with their labels. The ends of a ``logarithmic`` axis are given as decimal
    logarithms, its ticks as values.
    """

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """The position of ``value`` between the ends, 0 to 1."""
        position = math.log10(value) if self.logarithmic else value
        return (position - self.low) / (self.high - self.low)

    def place(self, value: float) -> str:
        """The position of ``value`` as a percentage of the axis, for an SVG attribute."""
        return f"{100 * self.share(value):.4g}%"

    def width(self, length: float, least: float = 0.0) -> str:
        """``length`` as a percentage of the axis, at ``least`` so many percent."""
        percent = 100 * length / (self.high - self.low)
        return f"{max(least, percent):.4g}%"


def time_axis(timelines: Sequence[Timeline], further: Iterable[float] = ()) -> Axis:
    """The time axis of one streaming item.

    It covers the models' rounds, the item's question and t*, and the ``further`` times.

    >>> timeline = Timeline(model="m", task="t", item="i", query_time=2.0, expected_time=15.0,
    ...                     tolerance=3.0, rounds=())
    >>> time_axis([timeline], [32.0]).ticks
    ((2.0, '2'), (32.0, '32'))
    """
    item = timelines[0]
    times = [item.query_time, *further]
    for timeline in timelines:
        times += [streaming_round.time for streaming_round in timeline.rounds]
    if item.expected_time is not None:
        times.append(item.expected_time - item.tolerance)
        times.append(item.expected_time + item.tolerance)
    start, end = min(times), max(times)
    span = (end - start) or 1.0
    margin = span / 48  # 2 percent of the axis at each end
    ticks = ((start, f"{start:g}"), (end, f"{end:g}"))
    return Axis("", start - margin, start + span * 49 / 48, ticks)

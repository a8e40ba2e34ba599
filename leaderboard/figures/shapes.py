"""Shapes of figures as data: numbers, labels, axes and looks, which pages and matplotlib draw
alike, and places on a page.

Bars and dumbbells are lines in blocks (:class:`Blocks`); cost, reliability and coverage are points
on a plane.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from medtasks.core.text import first_names, one_line

from ..schema.board import Timeline

WIDTH, HEIGHT = 320, 220
"""Of the area of a plane on a page."""
RADIUS = 140
"""Of a radar on a page."""


class Look(NamedTuple):
    """The style of one series: a colour of Okabe and Ito (grey for their yellow, which fades on
    white), and marks.
    """

    colour: str
    marker: str
    hatch: str
    line: tuple[int, tuple[float, ...]]


LOOKS = (
    Look("#0072b2", "o", "", (0, ())),
    Look("#e69f00", "s", "////", (0, (6, 2))),
    Look("#009e73", "^", "||||", (0, (2, 2))),
    Look("#d55e00", "D", "\\\\\\\\", (0, (6, 2, 1, 2))),
    Look("#56b4e9", "v", "xxxx", (0, (1, 1))),
    Look("#cc79a7", "P", "----", (0, (9, 2, 2, 2, 2, 2))),
    Look("#8d96a0", "X", "++++", (0, (4, 1))),
    Look("#9b7a00", "*", "//", (0, (3, 1, 1, 1, 1, 1))),
)


def short(text: str, most: int = 30) -> str:
    """``text`` on one line; the middle of a long one is cut, because sizes and versions are at the
    end.
    """
    plain = one_line(text)
    if len(plain) <= most:
        return plain
    end = (most - 1) * 2 // 5
    return f"{plain[: most - 1 - end]}…{plain[len(plain) - end :]}"


def distinct(texts: Sequence[str], most: int = 30) -> list[str]:
    """`short` of each, with a number added to those that would be equal."""
    cut = [short(text, most) for text in texts]
    return [
        f"{text} ({cut[: place + 1].count(text)})" if cut.count(text) > 1 else text
        for place, text in enumerate(cut)
    ]


def wrapped(text: str, width: int) -> str:
    """``text`` in at most three lines of ``width`` characters."""
    return "\n".join(textwrap.wrap(one_line(text), width, max_lines=3, placeholder=" …"))


listed = partial(first_names, most=8, separator="; ")
"""The first parts as a list in a sentence, and the number of the others."""


class Axis(NamedTuple):
    """An axis: its title with the unit, its ends (logarithms on a ``wide`` one), and ticks, values
    with their texts.
    """

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    wide: bool = False

    def share(self, value: float) -> float:
        """The place of a value between the ends, 0 to 1."""
        return ((math.log10(value) if self.wide else value) - self.low) / (self.high - self.low)

    def place(self, value: float) -> str:
        """The place of a value on a page."""
        return f"{100 * self.share(value):.4g}%"

    def width(self, length: float, least: float = 0.0) -> str:
        """A length on a page, at ``least`` so many percent."""
        return f"{max(least, 100 * length / (self.high - self.low)):.4g}%"


class Line(NamedTuple):
    """A model in a figure: its score in a column as drawn, with its interval and its number
    (starred if incomplete), or the two values of a dumbbell and their difference. ``words`` are the
    model and its score in a sentence.
    """

    label: str
    look: Look
    text: str
    values: tuple[float | None, ...]
    ends: tuple[float, float] | None = None
    incomplete: bool = False
    words: str = ""

    @property
    def value(self) -> float | None:
        return self.values[0]

    @property
    def competing(self) -> float | None:
        """The score if it is complete."""
        return None if self.incomplete else self.value


class Block(NamedTuple):
    """The models in one column, or in a pair of columns; ``note`` is its remark, or says what
    ``chance`` is.
    """

    names: Sequence[str]
    note: str
    chance: float | None
    lines: Sequence[Line]
    axis: Axis = Axis("", 0.0, 1.0)


class Blocks(NamedTuple):
    """Bars with intervals, or dumbbells if ``paired``; blocks with the same axis can be
    compared.
    """

    blocks: Sequence[Block]
    paired: bool
    confidence: float

    @property
    def title(self) -> str:
        return " or ".join(dict.fromkeys(block.axis.title for block in self.blocks))


class Heat(NamedTuple):
    """Rows of cells: text, and 0 (worst) to 1 (best), None without a value."""

    across: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, float | None]]]]
    worst: str
    best: str
    lacks: str


class Radar(NamedTuple):
    """Closed curves around a centre, on one scale from 0 to ``rim``: a value for each axis, None
    for a gap.
    """

    axes: Sequence[str]
    rim: float
    title: str
    curves: Sequence[tuple[str, Look, Sequence[float | None]]]

    @property
    def angles(self) -> list[float]:
        return [2 * math.pi * place / len(self.axes) for place in range(len(self.axes))]

    @property
    def labels(self) -> list[tuple[float, float, str, float, float, str]]:
        """By axis its end on a page, and its label with the label's place and anchor."""
        found = []
        for angle, label in zip(self.angles, self.axes, strict=True):
            side = math.sin(angle)
            anchor = "middle" if abs(side) < 1e-6 else "start" if side > 0 else "end"
            x, y = _around(RADIUS + 8, angle)
            found.append(
                (*_around(RADIUS, angle), short(label, 30), x, y + 4 - 4 * math.cos(angle), anchor)
            )
        return found

    def path(self, values: Sequence[float | None]) -> tuple[str, list[tuple[float, float]]]:
        """Path data of a closed curve with its gaps, and its dots."""
        sides = zip(self.angles, values, strict=True)
        places = [
            None if value is None else _around(RADIUS * value / self.rim, angle)
            for angle, value in sides
        ]
        path, pen = "", "M"
        for place in (*places, places[0]):
            path += f"{pen}{place[0]} {place[1]}" if place else ""
            pen = "L" if place else "M"
        return path, [place for place in places if place]


def _around(radius: float, angle: float) -> tuple[float, float]:
    return round(radius * math.sin(angle), 1), round(-radius * math.cos(angle), 1)


class Point(NamedTuple):
    """A dot with a radius, and the interval of its height."""

    x: float
    y: float
    radius: float
    ends: tuple[float, float] | None = None


class Plane(NamedTuple):
    """Points of models over two axes; ``joined`` in their order if both are in percent."""

    across: Axis
    up: Axis
    curves: Sequence[tuple[str, Look, Sequence[Point]]]
    joined: bool
    diagonal: bool = False

    def x(self, value: float) -> float:
        """The place on a page, as `y`."""
        return round(WIDTH * self.across.share(value), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT * (1 - self.up.share(value)), 1)

    def path(self, points: Sequence[Point]) -> str:
        """Path data: the line through the points, and their intervals."""
        line = (
            "M" + "L".join(f"{self.x(one.x)} {self.y(one.y)}" for one in points)
            if self.joined
            else ""
        )
        ends = [
            f"M{self.x(one.x)} {self.y(one.ends[0])}V{self.y(one.ends[1])}"
            for one in points
            if one.ends
        ]
        return "".join((line, *ends))


def time_axis(lines: Sequence[Timeline], further: Iterable[float] = ()) -> Axis:
    """The axis of the models' rounds of one item, of its question and t*, and of ``further``
    times.
    """
    first = lines[0]
    times = [first.query_time, *further, *(one.time for line in lines for one in line.rounds)]
    if first.expected_time is not None:
        times += [first.expected_time - first.tolerance, first.expected_time + first.tolerance]
    start, end = min(times), max(times)
    span = (end - start) or 1.0
    ticks = [(time, f"{time:g}") for time in (start, end)]
    return Axis("", start - span / 48, start + span * 49 / 48, ticks)  # a margin of 2 percent

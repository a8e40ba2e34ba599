"""The thirty pictures of the miniature Med-CMR (``pictures.json``).

Pictures have the colours of their imaging modality, and marks drawn at places that a test can ask
for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

from . import read_table

Point = tuple[float, float]

CAPTION = 18
"""Height in pixels of the strip above panels with captions."""

BACKDROPS: Mapping[str, tuple[str, str]] = {
    "cxr": ("#242424", "#3d3d3d"),
    "chest ct": ("#0a0a0a", "#1f1f1f"),
    "abdominal ct": ("#0a0a0a", "#949494"),
    "brain ct": ("#0a0a0a", "#6b6b6b"),
    "brain mri": ("#0a0a0a", "#808080"),
    "ultrasound": ("#050505", "#666666"),
    "fundus": ("#000000", "#a34d21"),
    "histology": ("#f2bdd6", "#e3b3c9"),
    "dermoscopy": ("#edbda3", "#e0b39c"),
    "endoscopy": ("#000000", "#c46b5c"),
}
"""Colours of a panel: around the body, and of the body, which is a disc."""


class Mark(NamedTuple):
    """One drawn target; middle and half extents are fractions of the panel."""

    name: str
    shape: str
    x: float
    y: float
    wide: float
    tall: float
    color: str


class Panel(NamedTuple):
    """A square part of a picture: a backdrop, marks (later ones on top), a caption or none."""

    backdrop: str
    marks: tuple[Mark, ...]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """Everything that a picture shows, panels from left to right."""

    panels: tuple[Panel, ...]

    @property
    def side(self) -> int:
        """Side of one panel in pixels."""
        return {1: 256, 2: 224}.get(len(self.panels), 160)

    @property
    def above(self) -> int:
        """Height in pixels of the captions."""
        return CAPTION if any(panel.caption for panel in self.panels) else 0

    def box(self, mark: Mark, panel: int) -> tuple[int, int, int, int]:
        """Left, top, right, bottom in pixels of a mark of that panel; it changes no pixel outside
        them.
        """
        left, right = (round((mark.x + side * mark.wide + panel) * self.side) for side in (-1, 1))
        top, bottom = (
            round((mark.y + side * mark.tall) * self.side) + self.above for side in (-1, 1)
        )
        return left, top, right, bottom


PICTURES = {
    name: Picture(panels)
    for name, panels in read_table("pictures.json", dict[str, tuple[Panel, ...]]).items()
}
"""The pictures by name, the image's file name without its suffix; those of ``…_2`` show the same
finding lower.
"""


def draw_all(directory: Path) -> None:
    """Write ``dataset/imgs/<name>.png``."""
    (directory / "dataset/imgs").mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        draw_picture(picture).save(directory / "dataset/imgs" / f"{name}.png")


def draw_picture(picture: Picture) -> Image.Image:
    """The picture in RGB."""
    side, above = picture.side, picture.above
    canvas = Image.new("RGB", (side * len(picture.panels), side + above))
    draw = ImageDraw.Draw(canvas)
    for number, panel in enumerate(picture.panels):
        around, body = BACKDROPS[panel.backdrop]
        left, top = number * side, above
        draw.rectangle((left, top, left + side, top + side), fill=around)
        draw.ellipse(
            (left + 0.04 * side, top + 0.04 * side, left + 0.96 * side, top + 0.96 * side),
            fill=body,
        )
        draw.text((left + 6, 3), panel.caption, fill=(235, 235, 235))
        for mark in panel.marks:
            box = picture.box(mark, number)
            for outline in SHAPES[mark.shape]:
                draw.polygon([_pixel(box, point) for point in outline], fill=mark.color)
    return canvas


def _pixel(box: tuple[int, int, int, int], point: Point) -> Point:
    left, top, right, bottom = box
    return left + (point[0] + 1) / 2 * (right - left), top + (point[1] + 1) / 2 * (bottom - top)


def _round(
    reach: Callable[[float], float] = lambda _: 1.0, x: float = 0, y: float = 0
) -> list[Point]:
    """A closed line around (x, y), ``reach(angle)`` away from it; angle 0 points right, a quarter
    turn down.
    """
    angles = [math.tau * step / 96 for step in range(96)]
    return [
        (x + reach(angle) * math.cos(angle), y + reach(angle) * math.sin(angle)) for angle in angles
    ]


def _wave(turns: float, thickness: Callable[[float], float]) -> list[Point]:
    """A wavy band from left to right, ``thickness(x)`` above and below its middle."""
    above, below = [], []
    for step in range(65):
        x = step / 32 - 1
        middle = 0.6 * math.sin(turns * x)
        above.append((x, middle - thickness(x)))
        below.append((x, middle + thickness(x)))
    return above + below[::-1]


SHAPES: Mapping[str, list[list[Point]]] = {
    "disc": [_round()],
    "jagged right": [
        _round(lambda angle: 0.82 + 0.18 * math.sin(14 * angle) if math.cos(angle) > 0 else 0.9)
    ],
    "star": [_round(lambda angle: 0.25 + 0.75 * abs(math.cos(4 * angle)) ** 6)],
    "crescent": [
        [*_round()[24:73], *((0.75 * abs(y) - 0.75, y) for y in (-0.6, -0.3, 0.0, 0.3, 0.6))]
    ],
    "cross": [
        [(-0.17, -1), (0.17, -1), (0.17, 1), (-0.17, 1)],
        [(-1, -0.17), (1, -0.17), (1, 0.17), (-1, 0.17)],
    ],
    "worm": [_wave(5.2, lambda x: 0.12 + 0.12 * max(-x, 0))],
    "trail": [_wave(4.5, lambda _: 0.2)],
    "triangle": [[(0, -1), (1, 1), (-1, 1)]],
    "shadow": [[(-0.6, -1), (0.6, -1), (1, 1), (-1, 1)]],
    "cap": [[*_round()[48:], (1, 0), (0, -0.4)]],
    "pool": [[(-1, 0), (0, 0.15), (1, 0), *_round()[1:48]]],
    "band": [[(-1, -1), (1, -1), (1, 1), (-1, 1)]],
    "spots": [
        _round(
            lambda _: 0.15,
            0.83 * math.sqrt(n / 12) * math.cos(2.4 * n),
            0.83 * math.sqrt(n / 12) * math.sin(2.4 * n),
        )
        for n in range(13)
    ],
}
"""Outlines to fill, on a square whose sides are at -1 and 1; y points down."""

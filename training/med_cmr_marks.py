"""Marks, and where they are: what all pictures for Med-CMR's questions are drawn of."""

from __future__ import annotations

import random

from PIL import Image

from .drawings.med_cmr import Mark, Panel, Picture, draw_picture

PLACES = {
    "upper left": (0.3, 0.3),
    "upper right": (0.7, 0.3),
    "lower left": (0.3, 0.7),
    "lower right": (0.7, 0.7),
    "centre": (0.5, 0.5),
}


def disc(x: float, y: float, size: float, color: str, shape: str = "disc", tall: float = 0) -> Mark:
    """A mark as wide as it is tall, unless ``tall`` is given."""
    return Mark("mark", shape, x, y, size, tall or size, color)


def single_panel(backdrop: str, *marks: Mark) -> Image.Image:
    """A picture of one panel."""
    return draw_picture(Picture((Panel(backdrop, marks),)))


def near(draw: random.Random, place: str, off: float = 0.1) -> tuple[float, float]:
    """A point at most ``off`` from a place."""
    x, y = PLACES[place]
    if place == "centre":
        off = min(off, 0.05)
    return x + draw.uniform(-off, off), y + draw.uniform(-off, off)


def anywhere(draw: random.Random) -> tuple[float, float]:
    """A point near one of the places."""
    return near(draw, draw.choice(list(PLACES)), 0.04)

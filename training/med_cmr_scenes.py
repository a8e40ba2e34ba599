"""Pictures like the miniature's, each drawn so that a given option is the right answer to its
question.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from PIL import Image

from .drawings.med_cmr import Panel, Picture, draw_picture
from .med_cmr_marks import PLACES, anywhere, disc, near, single_panel

_NUMBERS = ("none", "one", "two", "three", "four")
Draw = Callable[[random.Random, str], Image.Image]
"""Draws a picture for which the option, its second argument, is right."""


def spots(backdrop: str, size: float, color: str) -> Draw:
    """One spot at the place, or as many as the number, that the right option names."""

    def scene(draw: random.Random, right: str) -> Image.Image:
        places = [right] if right in PLACES else draw.sample(list(PLACES), _NUMBERS.index(right))
        marks = [disc(*near(draw, place), size * draw.uniform(0.9, 1.2), color) for place in places]
        return single_panel(backdrop, *marks)

    return scene


def place_of_large_cell(draw: random.Random, right: str) -> Image.Image:
    x, y = near(draw, right, 0.04)
    return single_panel(
        "histology", disc(x, y, 0.18, "#f5dbe6"), disc(x, y, 0.125, "#9e1442", "star")
    )


def content_of_large_cell(draw: random.Random, right: str) -> Image.Image:
    x, y = anywhere(draw)
    marks = {
        "a ring": [disc(x, y, 0.11, "#9e1442"), disc(x, y, 0.07, "#f5dbe6")],
        "two nuclei": [disc(x + side, y, 0.045, "#9e1442") for side in (-0.06, 0.06)],
    }
    shape = right.split()[1]
    return single_panel(
        "histology",
        disc(x, y, 0.18, "#f5dbe6"),
        *marks.get(right, [disc(x, y, 0.125, "#9e1442", shape)]),
    )


def endoscopic_finding(draw: random.Random, right: str) -> Image.Image:
    x, y = near(draw, draw.choice(list(PLACES)))
    marks = {
        "A": [disc(x, y, 0.15, "#96060c", "pool")],
        "B": [disc(0.8, y, 0.2, "#5a5e64", "band", 0.04)],
        "C": [disc(x, y, 0.09, "#f5f0e0"), disc(x, y, 0.05, "#7a2020")],
        "D": [disc(0.5, y, 0.23, "#fcf2d6", "worm", 0.085)],
        "E": [
            disc(*near(draw, place), 0.04, "#fad1c7")
            for place in draw.sample(list(PLACES), draw.choice((2, 3)))
        ],
    }
    return single_panel("endoscopy", *marks[right[0]])


def content_of_ring(draw: random.Random, right: str) -> Image.Image:
    x, y = draw.uniform(0.3, 0.7), draw.uniform(0.35, 0.65)
    fill = {"bright filling alone": "#ebebeb", "grey tissue": "#808080", "two dark dots": "#b0b0b0"}
    marks = [disc(x, y, 0.082, "#fafafa"), disc(x, y, 0.062, fill.get(right, "#242424"))]
    if right == "two dark dots":
        marks += [disc(x + side, y, 0.018, "#101010") for side in (-0.03, 0.03)]
    elif right.startswith("dark"):
        marks.append(disc(x + 0.01, y + 0.01, 0.018, "#ebebeb"))
    return single_panel("brain mri", *marks)


def _turned(picture: Image.Image, right: str, *directions: str) -> Image.Image:
    """Turned counterclockwise, by a quarter for each direction before the right one."""
    return picture.rotate(90 * directions.index(right))


def jagged_edge(draw: random.Random, right: str) -> Image.Image:
    smooth = right.startswith("none")
    patch = disc(
        0.5, 0.5, draw.uniform(0.24, 0.32), "#663b26", "disc" if smooth else "jagged right"
    )
    return _turned(
        single_panel("dermoscopy", patch),
        right,
        "the right one",
        "the upper one",
        "the left one",
        right,
    )


def veil_color(draw: random.Random, right: str) -> Image.Image:
    colors = {
        "red": "#b0201c",
        "white": "#f4efe4",
        "yellow": "#e0c040",
        "green": "#4e8a44",
        "blue-grey": "#6b7894",
    }
    veil = disc(draw.uniform(0.44, 0.56), draw.uniform(0.6, 0.66), 0.1, colors[right], tall=0.07)
    return single_panel(
        "dermoscopy", disc(0.5, 0.5, 0.3, "#663b26", draw.choice(("disc", "jagged right"))), veil
    )


def place_beside_cyst(draw: random.Random, right: str) -> Image.Image:
    x, y = draw.uniform(0.3, 0.6), draw.uniform(0.35, 0.6)
    steps = {
        "below it": (0, 0.17),
        "above it": (0, -0.17),
        "left of it": (-0.17, 0),
        "right of it": (0.17, 0),
    }
    across, down = steps.get(right, (0, 0))
    return single_panel(
        "abdominal ct", disc(x, y, 0.065, "#383838"), disc(x + across, y + down, 0.026, "#fcfcfc")
    )


_BRIGHT, _DARK = (0.052, "#f2f2f2"), (0.06, "#0f0f0f", "disc", 0.05)


def side_of_bright_spot(draw: random.Random, right: str) -> Image.Image:
    y = draw.uniform(0.36, 0.52)
    sides = {
        "left": [0.32],
        "both": [0.32, 0.68],
        "in the midline": [0.5],
        "neither": [],
        "right": [0.68],
    }
    marks = [disc(x, y + draw.uniform(-0.02, 0.02), *_BRIGHT) for x in sides[right]]
    if right in ("left", "right"):
        marks.append(disc(0.32 if right == "right" else 0.68, y, *_DARK))
    return single_panel("brain mri", *marks)


def relation_of_findings(draw: random.Random, right: str) -> Image.Image:
    x, y = draw.choice((0.32, 0.5)), draw.uniform(0.36, 0.5)
    if right == "one above the other":
        x, y = draw.choice((0.32, 0.5, 0.68)), 0.34
    across, down = {"one": (0, 0.3), "at": (0.36, 0), "touching": (0.11, 0)}[right.split()[0]]
    size = 0.052
    if right == "one inside the other":
        across, down, size = 0, 0, 0.03
    return single_panel(
        "brain mri", disc(x, y, *_DARK), disc(min(x + across, 0.7), y + down, size, "#f2f2f2")
    )


def panel_and_side(draw: random.Random, right: str) -> Image.Image:
    if right.startswith("both"):
        return _ct_and_mri(draw, 0.5, 0.5)
    x = 0.32 if right.endswith("left side") else 0.68
    if right.startswith("left"):
        return _ct_and_mri(draw, x, None)
    return _ct_and_mri(draw, None, x)


def panel_with_lesion(draw: random.Random, right: str) -> Image.Image:
    x = draw.choice((0.32, 0.5, 0.68))
    ct = x if right in ("both", "the CT alone") else None
    mri = x if right in ("both", "the MRI alone") else None
    return _ct_and_mri(draw, ct, mri)


def _ct_and_mri(draw: random.Random, ct: float | None, mri: float | None) -> Image.Image:
    """A CT beside an MRI, each with a lesion at that x, or without one."""
    y = draw.uniform(0.4, 0.6)
    panels = []
    for backdrop, label, x in (("brain ct", "CT", ct), ("brain mri", "MRI", mri)):
        marks = []
        if x is not None:
            marks.append(disc(x + draw.uniform(-0.04, 0.04), y, 0.085, "#f5f5f5", tall=0.11))
        panels.append(Panel(backdrop, tuple(marks), label))
    return draw_picture(Picture(tuple(panels)))


def course_of_finding(
    backdrop: str, color: str, largest: float, courses: Mapping[str, str]
) -> tuple[Sequence[str], Draw]:
    """Three days of one round finding that ``grows``, ``shrinks``, ``stays``, ``moves``, or
    ``pales``.
    """

    def scene(draw: random.Random, right: str) -> Image.Image:
        course = courses[right]
        x, y = draw.choice((0.29, 0.71)), draw.uniform(0.38, 0.6)
        if backdrop == "dermoscopy" and course != "moves":
            x, y = draw.uniform(0.45, 0.55), draw.uniform(0.46, 0.54)
        small, large = largest * draw.uniform(0.3, 0.45), largest * draw.uniform(0.85, 1.0)
        middle = (small + large) / 2
        sizes, colors, places = [middle] * 3, [color] * 3, [x] * 3
        if course == "grows":
            sizes = [small, middle, large]
        elif course == "shrinks":
            sizes = [large, middle, small]
        elif course == "moves":
            places[2] = 1 - x
        elif course == "pales":
            colors[1:] = ["#9a6a50", "#c89a84"]
        panels = []
        for number, day in enumerate(("day 1", "day 30", "day 90")):
            mark = disc(places[number], y, sizes[number], colors[number])
            panels.append(Panel(backdrop, (mark,), day))
        return draw_picture(Picture(tuple(panels)))

    return list(courses), scene


def shape_below_disc(draw: random.Random, right: str) -> Image.Image:
    colors = {
        "white": "#faf5e0",
        "red": "#80080a",
        "yellow": "#f0d840",
        "black": "#000000",
        "grey": "#8a8a8a",
    }
    _, color, shape = right.split()
    shape = shape if shape in ("crescent", "star", "cross") else "disc"
    x, y = draw.uniform(0.28, 0.5), draw.uniform(0.64, 0.76)
    return single_panel("fundus", disc(x, y, 0.105, colors[color], shape, 0.125))


def crescent_direction(draw: random.Random, right: str) -> Image.Image:
    place = draw.uniform(0.3, 0.7), draw.uniform(0.3, 0.7)
    picture = single_panel("fundus", disc(*place, 0.105, "#faf5e0", "crescent", 0.125))
    return _turned(picture, right, "to the right", "up", "to the left", "down")


def thick_end(draw: random.Random, right: str) -> Image.Image:
    thread = disc(draw.uniform(0.45, 0.55), draw.uniform(0.3, 0.8), 0.23, "#fcf2d6", "worm", 0.085)
    picture = single_panel("endoscopy", thread)
    return (
        picture if right == "the left one" else picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    )


LINES = {
    "the left lung": (0.27, 0.45),
    "the midline": (0.5, 0.35),
    "the right lung": (0.73, 0.45),
    "the diaphragm": (0.3, 0.85),
}


def line_of_object(draw: random.Random, right: str) -> Image.Image:
    x, y = (coordinate + draw.uniform(-0.04, 0.04) for coordinate in LINES[right])
    rims = (0.07, "#ffffff"), (0.056, "#4d4d4d"), (0.046, "#ffffff")
    return single_panel("cxr", *(disc(x, y, size, color) for size, color in rims))


_SIGNS = ("a ring", "a star", "a bright cross", "a crescent", "a line")
SIGN_PLACES = {
    "in front": (0.5, 0.2),
    "on the left": (0.25, 0.5),
    "on the right": (0.75, 0.5),
    "in the midline, below the ventricles": (0.5, 0.72),
}


def sign_in_round_area(draw: random.Random, right: str) -> Image.Image:
    sign = right if right in _SIGNS else draw.choice(_SIGNS)
    place = SIGN_PLACES[right if right in SIGN_PLACES else draw.choice(list(SIGN_PLACES))]
    x, y = (coordinate + draw.uniform(-0.03, 0.03) for coordinate in place)
    marks = [disc(x, y, 0.115, "#575757", tall=0.105)]
    if sign == "a ring":
        marks += [disc(x, y, 0.072, "#fafafa"), disc(x, y, 0.05, "#575757")]
    elif sign == "a line":
        marks.append(disc(x, y, 0.072, "#fafafa", "band", 0.015))
    else:
        marks.append(disc(x, y, 0.072, "#fafafa", sign.split()[-1], 0.066))
    return single_panel("brain mri", *marks)


def end_of_trail(draw: random.Random, right: str) -> Image.Image:
    y = draw.uniform(0.35, 0.65)
    marks = {
        "a small dark triangle": [disc(0.72, y - 0.025, 0.034, "#2e1a14", "triangle")],
        "a blue dot": [disc(0.72, y - 0.025, 0.034, "#2848c0")],
        "a ring": [
            disc(0.72, y - 0.025, 0.04, "#2e1a14"),
            disc(0.72, y - 0.025, 0.025, "#edbda3"),
        ],
    }
    return single_panel(
        "dermoscopy", disc(0.44, y, 0.25, "#fcf2e6", "trail", 0.06), *marks.get(right, [])
    )

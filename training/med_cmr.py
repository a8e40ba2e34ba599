"""Those questions of the miniature that another drawing answers in another way, with other
drawings.

Questions that only knowledge answers ("Why is there a black band below the echo?") are not taught.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from PIL import Image

from medtasks.benchmarks.med_cmr.records import FILES

from .drawings import BENCHMARKS
from .drawings.med_cmr import Mark, Panel, Picture, draw_picture
from .lesson import Lesson, Shown

_PLACES = {
    "upper left": (0.3, 0.3),
    "upper right": (0.7, 0.3),
    "lower left": (0.3, 0.7),
    "lower right": (0.7, 0.7),
    "centre": (0.5, 0.5),
}
_NUMBERS = ("none", "one", "two", "three", "four")
_USUAL = {
    "one",
    "E) small polyps",
    "none of them",
    "blue-grey",
    "the MRI alone",
    "it shrinks",
    "a smaller opacity or none",
    "its width",
    "a wider patch",
}
"""Right more often than the other options, as in practice: solitary findings, smooth edges of
moles, pneumonias that heal, moles that grow. Rare findings, which the miniature's long-tail
questions are about, are equally frequent.
"""
Draw = Callable[[random.Random, str], Image.Image]
"""Draws a picture whose right option is the one given."""


def lessons(seed: int) -> Iterator[Lesson]:
    """Each question in turn about a picture of its own; half of them with the options in another
    order.
    """
    draw = random.Random(seed)
    rows = json.loads((BENCHMARKS / "med_cmr/mini" / FILES["mcq"]).read_text(encoding="utf-8"))
    options = {row["question"]: [row[letter] for letter in "ABCDE"] for row in rows}
    while True:
        for question, (answers, scene) in _SCENES.items():
            order = list(options[question])
            right = draw.choice(answers or order)
            if draw.random() < 0.4:
                right = next((answer for answer in answers or order if answer in _USUAL), right)
            if draw.random() < 0.5:
                draw.shuffle(order)
            fields = {"question": question, "choices": dict(zip("ABCDE", order, strict=True))}
            picture = Shown(scene(draw, right), {f"med_cmr {question}": right})
            yield Lesson("med_cmr/mcq.j2", fields, (picture,), "ABCDE"[order.index(right)])
            if draw.random() < 0.5:
                yield Lesson(
                    "med_cmr/open.j2", {"question": question}, (picture,), f"Final answer: {right}"
                )


def _disc(
    x: float, y: float, size: float, color: str, shape: str = "disc", tall: float = 0
) -> Mark:
    return Mark("mark", shape, x, y, size, tall or size, color)


def _single(backdrop: str, *marks: Mark) -> Image.Image:
    return draw_picture(Picture((Panel(backdrop, marks),)))


def _near(draw: random.Random, place: str, off: float = 0.1) -> tuple[float, float]:
    (x, y), off = _PLACES[place], min(off, 0.05) if place == "centre" else off
    return x + draw.uniform(-off, off), y + draw.uniform(-off, off)


def _anywhere(draw: random.Random) -> tuple[float, float]:
    return _near(draw, draw.choice(list(_PLACES)), 0.04)


def _spots(backdrop: str, size: float, color: str) -> Draw:
    """One spot at the place, or as many as the number, that the right option names."""

    def scene(draw: random.Random, right: str) -> Image.Image:
        places = [right] if right in _PLACES else draw.sample(list(_PLACES), _NUMBERS.index(right))
        marks = [
            _disc(*_near(draw, place), size * draw.uniform(0.9, 1.2), color) for place in places
        ]
        return _single(backdrop, *marks)

    return scene


def _large_cell(draw: random.Random, right: str) -> Image.Image:
    x, y = _near(draw, right, 0.04)
    return _single("histology", _disc(x, y, 0.18, "#f5dbe6"), _disc(x, y, 0.125, "#9e1442", "star"))


def _held(draw: random.Random, right: str) -> Image.Image:
    x, y = _anywhere(draw)
    marks = {
        "a ring": [_disc(x, y, 0.11, "#9e1442"), _disc(x, y, 0.07, "#f5dbe6")],
        "two nuclei": [_disc(x + side, y, 0.045, "#9e1442") for side in (-0.06, 0.06)],
    }
    shape = right.split()[1]
    return _single(
        "histology",
        _disc(x, y, 0.18, "#f5dbe6"),
        *marks.get(right, [_disc(x, y, 0.125, "#9e1442", shape)]),
    )


def _finding(draw: random.Random, right: str) -> Image.Image:
    x, y = _near(draw, draw.choice(list(_PLACES)))
    marks = {
        "A": [_disc(x, y, 0.15, "#96060c", "pool")],
        "B": [_disc(0.8, y, 0.2, "#5a5e64", "band", 0.04)],
        "C": [_disc(x, y, 0.09, "#f5f0e0"), _disc(x, y, 0.05, "#7a2020")],
        "D": [_disc(0.5, y, 0.23, "#fcf2d6", "worm", 0.085)],
        "E": [
            _disc(*_near(draw, place), 0.04, "#fad1c7")
            for place in draw.sample(list(_PLACES), draw.choice((2, 3)))
        ],
    }
    return _single("endoscopy", *marks[right[0]])


def _ring(draw: random.Random, right: str) -> Image.Image:
    x, y = draw.uniform(0.3, 0.7), draw.uniform(0.35, 0.65)
    fill = {"bright filling alone": "#ebebeb", "grey tissue": "#808080", "two dark dots": "#b0b0b0"}
    marks = [_disc(x, y, 0.082, "#fafafa"), _disc(x, y, 0.062, fill.get(right, "#242424"))]
    if right == "two dark dots":
        marks += [_disc(x + side, y, 0.018, "#101010") for side in (-0.03, 0.03)]
    elif right.startswith("dark"):
        marks.append(_disc(x + 0.01, y + 0.01, 0.018, "#ebebeb"))
    return _single("brain mri", *marks)


def _turned(picture: Image.Image, right: str, *directions: str) -> Image.Image:
    """Turned counterclockwise, by a quarter for each direction before the right one."""
    return picture.rotate(90 * directions.index(right))


def _teeth(draw: random.Random, right: str) -> Image.Image:
    smooth = right.startswith("none")
    patch = _disc(
        0.5, 0.5, draw.uniform(0.24, 0.32), "#663b26", "disc" if smooth else "jagged right"
    )
    return _turned(
        _single("dermoscopy", patch), right, "the right one", "the upper one", "the left one", right
    )


def _veil(draw: random.Random, right: str) -> Image.Image:
    colors = {
        "red": "#b0201c",
        "white": "#f4efe4",
        "yellow": "#e0c040",
        "green": "#4e8a44",
        "blue-grey": "#6b7894",
    }
    veil = _disc(draw.uniform(0.44, 0.56), draw.uniform(0.6, 0.66), 0.1, colors[right], tall=0.07)
    return _single(
        "dermoscopy", _disc(0.5, 0.5, 0.3, "#663b26", draw.choice(("disc", "jagged right"))), veil
    )


def _beside(draw: random.Random, right: str) -> Image.Image:
    x, y = draw.uniform(0.3, 0.6), draw.uniform(0.35, 0.6)
    steps = {
        "below it": (0, 0.17),
        "above it": (0, -0.17),
        "left of it": (-0.17, 0),
        "right of it": (0.17, 0),
    }
    across, down = steps.get(right, (0, 0))
    return _single(
        "abdominal ct", _disc(x, y, 0.065, "#383838"), _disc(x + across, y + down, 0.026, "#fcfcfc")
    )


_BRIGHT, _DARK = (0.052, "#f2f2f2"), (0.06, "#0f0f0f", "disc", 0.05)


def _side(draw: random.Random, right: str) -> Image.Image:
    y = draw.uniform(0.36, 0.52)
    sides = {
        "left": [0.32],
        "both": [0.32, 0.68],
        "in the midline": [0.5],
        "neither": [],
        "right": [0.68],
    }
    marks = [_disc(x, y + draw.uniform(-0.02, 0.02), *_BRIGHT) for x in sides[right]]
    if right in ("left", "right"):
        marks.append(_disc(0.32 if right == "right" else 0.68, y, *_DARK))
    return _single("brain mri", *marks)


def _heights(draw: random.Random, right: str) -> Image.Image:
    x, y = draw.choice((0.32, 0.5)), draw.uniform(0.36, 0.5)
    if right == "one above the other":
        x, y = draw.choice((0.32, 0.5, 0.68)), 0.34
    across, down = {"one": (0, 0.3), "at": (0.36, 0), "touching": (0.11, 0)}[right.split()[0]]
    across, down = (0, 0) if right == "one inside the other" else (across, down)
    size = 0.03 if right == "one inside the other" else 0.052
    return _single(
        "brain mri", _disc(x, y, *_DARK), _disc(min(x + across, 0.7), y + down, size, "#f2f2f2")
    )


def _panels(draw: random.Random, right: str) -> Image.Image:
    x = 0.32 if right.endswith("left side") else 0.68
    where = (
        (0.5, 0.5)
        if right.startswith("both")
        else (x, None)
        if right.startswith("left")
        else (None, x)
    )
    return _ct_and_mri(draw, where)


def _lesion(draw: random.Random, right: str) -> Image.Image:
    x = draw.choice((0.32, 0.5, 0.68))
    return _ct_and_mri(
        draw, [x if right in ("both", f"the {name} alone") else None for name in ("CT", "MRI")]
    )


def _ct_and_mri(draw: random.Random, where: Sequence[float | None]) -> Image.Image:
    y = draw.uniform(0.4, 0.6)
    marks = [
        () if x is None else (_disc(x + draw.uniform(-0.04, 0.04), y, 0.085, "#f5f5f5", tall=0.11),)
        for x in where
    ]
    return draw_picture(
        Picture((Panel("brain ct", marks[0], "CT"), Panel("brain mri", marks[1], "MRI")))
    )


def _strip(
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
        sizes = {"grows": (small, middle, large), "shrinks": (large, middle, small)}.get(
            course, (middle,) * 3
        )
        places = (x, x, 1 - x) if course == "moves" else (x,) * 3
        colors = (color, "#9a6a50", "#c89a84") if course == "pales" else (color,) * 3
        marks = [
            _disc(x, y, size, shade) for x, size, shade in zip(places, sizes, colors, strict=True)
        ]
        days = zip(marks, ("day 1", "day 30", "day 90"), strict=True)
        return draw_picture(Picture(tuple(Panel(backdrop, (mark,), day) for mark, day in days)))

    return list(courses), scene


def _below(draw: random.Random, right: str) -> Image.Image:
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
    return _single("fundus", _disc(x, y, 0.105, colors[color], shape, 0.125))


def _horns(draw: random.Random, right: str) -> Image.Image:
    place = draw.uniform(0.3, 0.7), draw.uniform(0.3, 0.7)
    picture = _single("fundus", _disc(*place, 0.105, "#faf5e0", "crescent", 0.125))
    return _turned(picture, right, "to the right", "up", "to the left", "down")


def _thick(draw: random.Random, right: str) -> Image.Image:
    thread = _disc(draw.uniform(0.45, 0.55), draw.uniform(0.3, 0.8), 0.23, "#fcf2d6", "worm", 0.085)
    picture = _single("endoscopy", thread)
    return (
        picture if right == "the left one" else picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    )


_LINES = {
    "the left lung": (0.27, 0.45),
    "the midline": (0.5, 0.35),
    "the right lung": (0.73, 0.45),
    "the diaphragm": (0.3, 0.85),
}


def _line(draw: random.Random, right: str) -> Image.Image:
    x, y = (coordinate + draw.uniform(-0.04, 0.04) for coordinate in _LINES[right])
    rims = (0.07, "#ffffff"), (0.056, "#4d4d4d"), (0.046, "#ffffff")
    return _single("cxr", *(_disc(x, y, size, color) for size, color in rims))


_SIGNS = ("a ring", "a star", "a bright cross", "a crescent", "a line")
_SIGN_PLACES = {
    "in front": (0.5, 0.2),
    "on the left": (0.25, 0.5),
    "on the right": (0.75, 0.5),
    "in the midline, below the ventricles": (0.5, 0.72),
}


def _sign(draw: random.Random, right: str) -> Image.Image:
    sign = right if right in _SIGNS else draw.choice(_SIGNS)
    place = _SIGN_PLACES[right if right in _SIGN_PLACES else draw.choice(list(_SIGN_PLACES))]
    x, y = (coordinate + draw.uniform(-0.03, 0.03) for coordinate in place)
    marks = [_disc(x, y, 0.115, "#575757", tall=0.105)]
    if sign == "a ring":
        marks += [_disc(x, y, 0.072, "#fafafa"), _disc(x, y, 0.05, "#575757")]
    elif sign == "a line":
        marks.append(_disc(x, y, 0.072, "#fafafa", "band", 0.015))
    else:
        marks.append(_disc(x, y, 0.072, "#fafafa", sign.split()[-1], 0.066))
    return _single("brain mri", *marks)


def _end(draw: random.Random, right: str) -> Image.Image:
    y = draw.uniform(0.35, 0.65)
    marks = {
        "a small dark triangle": [_disc(0.72, y - 0.025, 0.034, "#2e1a14", "triangle")],
        "a blue dot": [_disc(0.72, y - 0.025, 0.034, "#2848c0")],
        "a ring": [
            _disc(0.72, y - 0.025, 0.04, "#2e1a14"),
            _disc(0.72, y - 0.025, 0.025, "#edbda3"),
        ],
    }
    return _single(
        "dermoscopy", _disc(0.44, y, 0.25, "#fcf2e6", "trail", 0.06), *marks.get(right, [])
    )


_SCENES: Mapping[str, tuple[Sequence[str], Draw]] = {
    "Where is the small round opacity in the picture?": ((), _spots("cxr", 0.024, "#b8b8b8")),
    "In which part of the lungs does the bright dot lie?": (
        (),
        _spots("chest ct", 0.02, "#bdbdbd"),
    ),
    "Where does the large cell lie?": ((), _large_cell),
    "What does the large pale cell hold?": ((), _held),
    "How many polyps can be seen?": ((), _spots("endoscopy", 0.04, "#fad1c7")),
    "How many nodules are there?": ((), _spots("cxr", 0.024, "#b8b8b8")),
    "Which finding is present?": ((), _finding),
    "What does the ring hold?": ((), _ring),
    "Which edge of the patch has teeth?": (
        ("the left one", "the right one", "the upper one", "none of them"),
        _teeth,
    ),
    "Which colour does the area near the lower edge have?": ((), _veil),
    "Where does the calcification lie, seen from the cyst?": ((), _beside),
    "On which side of the picture is the bright spot?": ((), _side),
    "How do the two findings lie to each other?": (
        ("one above the other", "at the same height", "one inside the other", "touching"),
        _heights,
    ),
    "In which panel, and on which side of the brain, is the bright area?": ((), _panels),
    "Which panel shows a lesion?": (("the CT alone", "both", "neither", "the MRI alone"), _lesion),
    "How does the opacity change from day 1 to day 90?": _strip(
        *("cxr", "#b3b3b3", 0.16),
        {
            "it grows": "grows",
            "it stays": "stays",
            "it moves to the other lung": "moves",
            "it shrinks": "shrinks",
        },
    ),
    "If this goes on, what will a later radiograph show?": _strip(
        *("cxr", "#b3b3b3", 0.16),
        {"a smaller opacity or none": "shrinks", "a larger opacity": "grows"},
    ),
    "What changes in the patch over the three days?": _strip(
        *("dermoscopy", "#5c3624", 0.3),
        {"its colour": "pales", "its place": "moves", "its width": "grows", "nothing": "stays"},
    ),
    "If this goes on, what will a later view show?": _strip(
        *("dermoscopy", "#5c3624", 0.3),
        {"a narrower patch": "shrinks", "a paler patch": "pales", "a wider patch": "grows"},
    ),
    "Which shape lies below the optic disc?": ((), _below),
    "Where do the horns of the crescent point?": (
        ("to the left", "up", "to the right", "down"),
        _horns,
    ),
    "Which end of the thread is thick?": (("the left one", "the right one"), _thick),
    "On which line does the bright object lie?": (list(_LINES), _line),
    "Which sign does the grey round area show?": ((), _sign),
    "Where does the sign lie?": (list(_SIGN_PLACES), _sign),
    "What sits at the right end of the trail?": (
        ("a small dark triangle", "a blue dot", "a ring", "nothing"),
        _end,
    ),
}
"""Question, the options that can be drawn (none named: all), and how."""

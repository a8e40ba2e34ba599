"""Those questions of the miniature that another drawing answers in another way, with other drawings.

Questions that only knowledge answers ("Why is there a black band below the echo?") are not taught.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from PIL import Image

from medtasks.benchmarks.med_cmr.mini.drawing import Mark, Panel, Picture, draw_picture

from .lesson import Lesson, Shown

_PLACES = {
    "upper left": (0.3, 0.3),
    "upper right": (0.7, 0.3),
    "lower left": (0.3, 0.7),
    "lower right": (0.7, 0.7),
    "centre": (0.5, 0.5),
}
_NUMBERS = ("none", "one", "two", "three", "four")
Scene = tuple[Image.Image, str, Sequence[str]]
"""A picture, the right option's text, and all options."""


def lessons(seed: int) -> Iterator[Lesson]:
    """Each question in turn about a picture of its own; half of them with the options in another order."""
    draw = random.Random(seed)
    while True:
        for question, scene in _SCENES.items():
            picture, right, options = scene(draw)
            order = list(options)
            if draw.random() < 0.5:
                draw.shuffle(order)
            fields = {"question": question, "choices": dict(zip("ABCDE", order, strict=True))}
            shown = Shown(picture, {f"med_cmr {question}": right})
            yield Lesson("med_cmr/mcq.j2", fields, (shown,), "ABCDE"[order.index(right)])
            if draw.random() < 0.5:
                yield Lesson("med_cmr/open.j2", {"question": question}, (shown,), f"Final answer: {right}")


def _disc(x: float, y: float, size: float, color: str, shape: str = "disc", tall: float = 0) -> Mark:
    return Mark("mark", shape, x, y, size, tall or size, color)


def _single(backdrop: str, *marks: Mark) -> Image.Image:
    return draw_picture(Picture((Panel(backdrop, marks),)))


def _near(draw: random.Random, place: str, off: float = 0.1) -> tuple[float, float]:
    (x, y), off = _PLACES[place], min(off, 0.05) if place == "centre" else off
    return x + draw.uniform(-off, off), y + draw.uniform(-off, off)


def _where(backdrop: str, size: float, color: str, *options: str) -> Callable[[random.Random], Scene]:
    def scene(draw: random.Random) -> Scene:
        right = draw.choice(options)
        mark = _disc(*_near(draw, right), size * draw.uniform(0.9, 1.2), color)
        return _single(backdrop, mark), right, options

    return scene


def _large_cell(draw: random.Random) -> Scene:
    right = draw.choice(list(_PLACES))
    x, y = _near(draw, right, 0.04)
    marks = _disc(x, y, 0.18, "#f5dbe6"), _disc(x, y, 0.125, "#9e1442", "star")
    return _single("histology", *marks), right, list(_PLACES)


def _held(draw: random.Random) -> Scene:
    looks = {
        "a ring": "ring",
        "a star with thin rays": "star",
        "a cross": "cross",
        "two nuclei": "",
        "a crescent": "crescent",
    }
    right = draw.choice(list(looks))
    x, y = _near(draw, draw.choice(list(_PLACES)), 0.04)
    marks = [_disc(x, y, 0.18, "#f5dbe6")]
    if right == "a ring":
        marks += [_disc(x, y, 0.11, "#9e1442"), _disc(x, y, 0.07, "#f5dbe6")]
    elif right == "two nuclei":
        marks += [_disc(x - 0.06, y, 0.045, "#9e1442"), _disc(x + 0.06, y, 0.045, "#9e1442")]
    else:
        marks.append(_disc(x, y, 0.125, "#9e1442", looks[right]))
    return _single("histology", *marks), right, list(looks)


def _count(backdrop: str, size: float, color: str, *options: str) -> Callable[[random.Random], Scene]:
    def scene(draw: random.Random) -> Scene:
        right = draw.choice(options)
        places = draw.sample(list(_PLACES), _NUMBERS.index(right))
        marks = [_disc(*_near(draw, place), size * draw.uniform(0.9, 1.2), color) for place in places]
        return _single(backdrop, *marks), right, options

    return scene


def _finding(draw: random.Random) -> Scene:
    options = ("A) fresh blood", "B) an instrument", "C) an ulcer", "D) a worm", "E) small polyps")
    right, (x, y) = draw.choice(options), _near(draw, draw.choice(list(_PLACES)))
    marks = {
        "A": [_disc(x, y, 0.15, "#96060c", "pool")],
        "B": [_disc(0.8, y, 0.2, "#5a5e64", "band", 0.04)],
        "C": [_disc(x, y, 0.09, "#f5f0e0"), _disc(x, y, 0.05, "#7a2020")],
        "D": [_disc(0.5, y, 0.23, "#fcf2d6", "worm", 0.085)],
        "E": [_disc(*_near(draw, place), 0.04, "#fad1c7") for place in draw.sample(list(_PLACES), draw.choice((2, 3)))],
    }
    return _single("endoscopy", *marks[right[0]]), right, options


def _ring(draw: random.Random) -> Scene:
    options = (
        "bright filling alone",
        "grey tissue",
        "two dark dots",
        "dark filling with a bright dot",
        "nothing at all",
    )
    right, x, y = draw.choice(options), draw.uniform(0.3, 0.7), draw.uniform(0.35, 0.65)
    fill = {"b": "#ebebeb", "g": "#808080", "t": "#b0b0b0", "d": "#242424", "n": "#242424"}[right[0]]
    marks = [_disc(x, y, 0.082, "#fafafa"), _disc(x, y, 0.062, fill)]
    if right == "two dark dots":
        marks += [_disc(x + side, y, 0.018, "#101010") for side in (-0.03, 0.03)]
    elif right.startswith("dark"):
        marks.append(_disc(x + 0.01, y + 0.01, 0.018, "#ebebeb"))
    return _single("brain mri", *marks), right, options


def _turned(picture: Image.Image, quarters: int) -> Image.Image:
    """Turned counterclockwise."""
    return picture.rotate(90 * quarters)


def _teeth(draw: random.Random) -> Scene:
    options = ("the left one", "the right one", "the upper one", "all of them", "none of them")
    right, size = draw.choice((*options[:3], options[4])), draw.uniform(0.24, 0.32)
    shape = "disc" if right.startswith("none") else "jagged right"
    picture = _single("dermoscopy", _disc(0.5, 0.5, size, "#663b26", shape))
    return _turned(picture, {"the left one": 2, "the upper one": 1}.get(right, 0)), right, options


def _veil(draw: random.Random) -> Scene:
    colors = {"red": "#b0201c", "white": "#f4efe4", "yellow": "#e0c040", "green": "#4e8a44", "blue-grey": "#6b7894"}
    right = draw.choice(list(colors))
    veil = _disc(draw.uniform(0.44, 0.56), draw.uniform(0.6, 0.66), 0.1, colors[right], tall=0.07)
    return (
        _single("dermoscopy", _disc(0.5, 0.5, 0.3, "#663b26", draw.choice(("disc", "jagged right"))), veil),
        right,
        list(colors),
    )


def _beside(draw: random.Random) -> Scene:
    steps = {
        "below it": (0.0, 0.17),
        "above it": (0.0, -0.17),
        "left of it": (-0.17, 0.0),
        "right of it": (0.17, 0.0),
        "inside it": (0.0, 0.0),
    }
    right, x, y = draw.choice(list(steps)), draw.uniform(0.3, 0.6), draw.uniform(0.35, 0.6)
    across, down = steps[right]
    cyst, spot = _disc(x, y, 0.065, "#383838"), _disc(x + across, y + down, 0.026, "#fcfcfc")
    return _single("abdominal ct", cyst, spot), right, list(steps)


def _pair(draw: random.Random, bright: Sequence[float], dark: Sequence[float]) -> Image.Image:
    height = draw.uniform(0.36, 0.52)
    spots = [_disc(x, height + draw.uniform(-0.02, 0.02), 0.052, "#f2f2f2") for x in bright]
    return _single("brain mri", *spots, *(_disc(x, height, 0.06, "#0f0f0f", tall=0.05) for x in dark))


def _side(draw: random.Random) -> Scene:
    sides = {"left": (0.32,), "both": (0.32, 0.68), "in the midline": (0.5,), "neither": (), "right": (0.68,)}
    right = draw.choice(list(sides))
    return (
        _pair(draw, sides[right], [0.32 if right == "right" else 0.68] * (right in ("left", "right"))),
        right,
        list(sides),
    )


def _heights(draw: random.Random) -> Scene:
    options = ("one above the other", "at the same height", "one inside the other", "in different slices", "touching")
    right = draw.choice((*options[:3], options[4]))
    x, y = draw.choice((0.32, 0.5)), draw.uniform(0.36, 0.5)
    x, y = (draw.choice((0.32, 0.5, 0.68)), 0.34) if right == options[0] else (x, y)
    across, down = {"o": (0.0, 0.3), "a": (0.36, 0.0), "i": (0.0, 0.0), "t": (0.11, 0.0)}[
        "i" if right == options[2] else right[0]
    ]
    marks = [
        _disc(x, y, 0.06, "#0f0f0f", tall=0.05),
        _disc(min(x + across, 0.7), y + down, 0.03 if right == options[2] else 0.052, "#f2f2f2"),
    ]
    return _single("brain mri", *marks), right, options


def _panels(draw: random.Random) -> Scene:
    options = (
        "left panel, left side",
        "right panel, right side",
        "left panel, right side",
        "right panel, left side",
        "both panels, midline",
    )
    right = draw.choice(options)
    where = {"both": (0.5, 0.5)}.get(right[:4]) or tuple(
        (0.32 if right.endswith("left side") else 0.68) if right.startswith(panel) else None
        for panel in ("left", "right")
    )
    return _ct_and_mri(draw, where), right, options


def _lesion(draw: random.Random) -> Scene:
    options = (
        "the CT alone",
        "both",
        "neither",
        "it cannot be told, the panels show different people",
        "the MRI alone",
    )
    right = draw.choice((*options[:3], options[4]))
    side = draw.choice((0.32, 0.5, 0.68))
    where = tuple(side if right in ("both", f"the {name} alone") else None for name in ("CT", "MRI"))
    return _ct_and_mri(draw, where), right, options


def _ct_and_mri(draw: random.Random, where: Sequence[float | None]) -> Image.Image:
    height = draw.uniform(0.4, 0.6)
    panels = tuple(
        Panel(
            backdrop,
            () if x is None else (_disc(x + draw.uniform(-0.04, 0.04), height, 0.085, "#f5f5f5", tall=0.11),),
            name,
        )
        for backdrop, name, x in zip(("brain ct", "brain mri"), ("CT", "MRI"), where, strict=True)
    )
    return draw_picture(Picture(panels))


def _strip(
    draw: random.Random, course: str, backdrop: str, color: str, x: float, y: float, largest: float
) -> Image.Image:
    """Three days of one round finding that ``grows``, ``shrinks``, ``stays``, ``moves``, or changes its ``color``."""
    small = largest * draw.uniform(0.3, 0.45)
    large = largest * draw.uniform(0.85, 1.0)
    middle = (small + large) / 2
    sizes = {"grows": (small, middle, large), "shrinks": (large, middle, small)}.get(course, (middle,) * 3)
    places = (x, x, 1 - x) if course == "moves" else (x,) * 3
    colors = (color, "#9a6a50", "#c89a84") if course == "color" else (color,) * 3
    return draw_picture(
        Picture(
            tuple(
                Panel(backdrop, (_disc(across, y, size, shade),), day)
                for across, size, shade, day in zip(places, sizes, colors, ("day 1", "day 30", "day 90"), strict=True)
            )
        )
    )


def _radiographs(options: Sequence[str], courses: Mapping[str, str]) -> Callable[[random.Random], Scene]:
    def scene(draw: random.Random) -> Scene:
        right = draw.choice(list(courses))
        place = draw.choice((0.29, 0.71)), draw.uniform(0.38, 0.6)
        return _strip(draw, courses[right], "cxr", "#b3b3b3", *place, 0.16), right, options

    return scene


def _patches(options: Sequence[str], courses: Mapping[str, str]) -> Callable[[random.Random], Scene]:
    def scene(draw: random.Random) -> Scene:
        right = draw.choice(list(courses))
        x = draw.choice((0.3, 0.7)) if courses[right] == "moves" else draw.uniform(0.45, 0.55)
        return _strip(draw, courses[right], "dermoscopy", "#5c3624", x, draw.uniform(0.46, 0.54), 0.3), right, options

    return scene


def _below(draw: random.Random) -> Scene:
    looks = {
        "a white crescent": ("#faf5e0", "crescent"),
        "a red spot": ("#80080a", "disc"),
        "a yellow star": ("#f0d840", "star"),
        "a black hole": ("#000000", "disc"),
        "a grey cross": ("#8a8a8a", "cross"),
    }
    right = draw.choice(list(looks))
    mark = _disc(draw.uniform(0.28, 0.5), draw.uniform(0.64, 0.76), 0.105, *looks[right], 0.125)
    return _single("fundus", mark), right, list(looks)


def _horns(draw: random.Random) -> Scene:
    options = ("to the left", "up", "to the right", "down", "to each other")
    right = draw.choice(options[:4])
    place = draw.uniform(0.3, 0.7), draw.uniform(0.3, 0.7)
    picture = _single("fundus", _disc(*place, 0.105, "#faf5e0", "crescent", 0.125))
    return _turned(picture, {"to the right": 0, "up": 1, "to the left": 2, "down": 3}[right]), right, options


def _thick(draw: random.Random) -> Scene:
    options = ("the left one", "the right one", "both", "neither", "it has no end")
    right = draw.choice(options[:2])
    picture = _single(
        "endoscopy", _disc(draw.uniform(0.45, 0.55), draw.uniform(0.3, 0.8), 0.23, "#fcf2d6", "worm", 0.085)
    )
    return picture if right == options[0] else picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), right, options


def _line(draw: random.Random) -> Scene:
    places = {
        "the left lung": (0.27, 0.45),
        "the midline": (0.5, 0.35),
        "the right lung": (0.73, 0.45),
        "the diaphragm": (0.3, 0.85),
    }
    right = draw.choice(list(places))
    x, y = (one + draw.uniform(-0.04, 0.04) for one in places[right])
    rims = (0.07, "#ffffff"), (0.056, "#4d4d4d"), (0.046, "#ffffff")
    return _single("cxr", *(_disc(x, y, size, color) for size, color in rims)), right, (*places, "the shoulder")


def _sign(draw: random.Random) -> tuple[Image.Image, str, str]:
    looks = {"a ring": "", "a star": "star", "a bright cross": "cross", "a crescent": "crescent", "a line": "band"}
    places = {
        "in front": (0.5, 0.2),
        "on the left": (0.25, 0.5),
        "on the right": (0.75, 0.5),
        "in the midline, below the ventricles": (0.5, 0.72),
    }
    sign, place = draw.choice(list(looks)), draw.choice(list(places))
    x, y = (one + draw.uniform(-0.03, 0.03) for one in places[place])
    marks = [_disc(x, y, 0.115, "#575757", tall=0.105)]
    if sign == "a ring":
        marks += [_disc(x, y, 0.072, "#fafafa"), _disc(x, y, 0.05, "#575757")]
    else:
        marks.append(_disc(x, y, 0.072, "#fafafa", looks[sign], 0.015 if sign == "a line" else 0.066))
    return _single("brain mri", *marks), sign, place


def _which_sign(draw: random.Random) -> Scene:
    picture, sign, _ = _sign(draw)
    return picture, sign, ("a ring", "a star", "a bright cross", "a crescent", "a line")


def _sign_place(draw: random.Random) -> Scene:
    picture, _, place = _sign(draw)
    return (
        picture,
        place,
        ("in front", "on the left", "on the right", "in the midline, below the ventricles", "outside the skull"),
    )


def _end(draw: random.Random) -> Scene:
    options = ("a small dark triangle", "a hair", "a blue dot", "a ring", "nothing")
    right, y = draw.choice((options[0], *options[2:])), draw.uniform(0.35, 0.65)
    marks = [_disc(0.44, y, 0.25, "#fcf2e6", "trail", 0.06)]
    if right == options[0]:
        marks.append(_disc(0.72, y - 0.025, 0.034, "#2e1a14", "triangle"))
    elif right == "a blue dot":
        marks.append(_disc(0.72, y - 0.025, 0.034, "#2848c0"))
    elif right == "a ring":
        marks += [_disc(0.72, y - 0.025, 0.04, "#2e1a14"), _disc(0.72, y - 0.025, 0.025, "#edbda3")]
    return _single("dermoscopy", *marks), right, options


_COURSES = {"it grows": "grows", "it stays": "stays", "it moves to the other lung": "moves", "it shrinks": "shrinks"}
_SCENES: Mapping[str, Callable[[random.Random], Scene]] = {
    "Where is the small round opacity in the picture?": _where(
        *("cxr", 0.024, "#b8b8b8"), "upper right", "upper left", "lower left", "lower right", "centre"
    ),
    "In which part of the lungs does the bright dot lie?": _where(
        *("chest ct", 0.02, "#bdbdbd"), "lower right", "upper left", "upper right", "lower left", "centre"
    ),
    "Where does the large cell lie?": _large_cell,
    "What does the large pale cell hold?": _held,
    "How many polyps can be seen?": _count("endoscopy", 0.04, "#fad1c7", *_NUMBERS),
    "How many nodules are there?": _count("cxr", 0.024, "#b8b8b8", "none", "two", "three", "one", "four"),
    "Which finding is present?": _finding,
    "What does the ring hold?": _ring,
    "Which edge of the patch has teeth?": _teeth,
    "Which colour does the area near the lower edge have?": _veil,
    "Where does the calcification lie, seen from the cyst?": _beside,
    "On which side of the picture is the bright spot?": _side,
    "How do the two findings lie to each other?": _heights,
    "In which panel, and on which side of the brain, is the bright area?": _panels,
    "Which panel shows a lesion?": _lesion,
    "How does the opacity change from day 1 to day 90?": _radiographs((*_COURSES, "it splits (two parts)"), _COURSES),
    "If this goes on, what will a later radiograph show?": _radiographs(
        (
            *("a smaller opacity or none", "a larger opacity", "fluid on both sides", "a fracture"),
            "a new opacity on the right",
        ),
        {"a smaller opacity or none": "shrinks", "a larger opacity": "grows"},
    ),
    "What changes in the patch over the three days?": _patches(
        ("its colour", "its place", "its width", "its number", "nothing"),
        {"its colour": "color", "its place": "moves", "its width": "grows", "nothing": "stays"},
    ),
    "If this goes on, what will a later view show?": _patches(
        ("a narrower patch", "two patches", "no patch", "a paler patch", "a wider patch"),
        {"a narrower patch": "shrinks", "a paler patch": "color", "a wider patch": "grows"},
    ),
    "Which shape lies below the optic disc?": _below,
    "Where do the horns of the crescent point?": _horns,
    "Which end of the thread is thick?": _thick,
    "On which line does the bright object lie?": _line,
    "Which sign does the grey round area show?": _which_sign,
    "Where does the sign lie?": _sign_place,
    "What sits at the right end of the trail?": _end,
}


PHRASES = [
    phrase
    for question, scene in _SCENES.items()
    for phrase in (question, *scene(random.Random(0))[2])
    if len(phrase) > 4
]
"""What the tokenizer has one token for."""

"""Endoscopy-like scenes other than the miniature's, and questions of the same kinds in one to three
parts.

Answers are terse. The stub judge of the demo compares words: with whole sentences, a wrong colour
would pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from .drawings.kvasir import CELLS, COLORS, SCENES, SIZES, Lesion, Scene, draw_scene
from .lesson import Drawing, Lesson

_NUMBERS = ("no", "one", "two", "three")


def _count(number: int, what: str, counted: str = "counted") -> str:
    return f"{_NUMBERS[number]} {what}{'' if number == 1 else 's'} {counted}"


def _polyps(scene: Scene) -> list[Lesion]:
    return [lesion for lesion in scene.lesions if lesion.kind == "polyp"]


def _values(scene: Scene, field: str) -> str:
    """The distinct values of a field of all lesions."""
    return " and ".join(dict.fromkeys(getattr(lesion, field) for lesion in scene.lesions))


_ANSWERS: Mapping[str, Callable[[Scene], str]] = {
    "How many polyps are there": lambda s: _count(len(_polyps(s)), "polyp"),
    "How many findings are there": lambda s: _count(len(s.lesions), "finding", "identified"),
    "How many instruments are there": lambda s: _count(int(s.instrument is not None), "instrument"),
    "What colour is the abnormality": lambda s: (
        _values(s, "color") or "no abnormality whose colour could be named"
    ),
    "Where is the abnormality": lambda s: _values(s, "cell") or "no abnormality to locate",
    "How large is the polyp": lambda s: (
        f"measures {_values(s, 'size')}" if _polyps(s) else "no polyp to measure"
    ),
    "Which abnormalities are visible": lambda s: (
        f"{_values(s, 'kind')} seen" if s.lesions else "no abnormality"
    ),
    "Is there any finding at all": lambda s: "contains a finding" if s.lesions else "no finding",
    "Is any text printed on the frame": lambda s: (
        "text is printed" if s.text else "no text printed"
    ),
    "Does a green or black box cover part of the frame": lambda s: (
        f"a {s.box} box" if s.box else "no box artefact"
    ),
    "Which procedure does the frame come from": lambda s: f"from a {s.procedure}",
    "Which anatomical landmark can be seen": lambda s: s.landmark or "no anatomical landmark",
    "Where is the anatomical landmark": lambda s: (
        s.landmark_cell if s.landmark else "no landmark to locate"
    ),
    "Where does the instrument lie": lambda s: (
        "lower-right" if s.instrument else "no instrument has a location"
    ),
    "Which instruments are in view": lambda s: (
        f"a {s.instrument}" if s.instrument else "no instrument"
    ),
}


def lessons(seed: int) -> Iterator[Lesson]:
    """Four questions about each scene."""
    draw = random.Random(seed)
    taken = {replace(scene, img_id="") for scene in SCENES}
    while True:
        scene = _scene(draw)
        if scene in taken:
            continue
        frame = Drawing(draw_scene(scene), _facts(scene))
        for parts in (1, 1, 2, 3):
            asked = draw.sample(list(_ANSWERS), parts)
            answer = _joined([_ANSWERS[question](scene) for question in asked])
            yield Lesson(
                "kvasir_vqa_x1/answer.j2", {"question": f"{_joined(asked)}?"}, (frame,), answer
            )


def _joined(parts: list[str]) -> str:
    """The parts as one sentence, whose first letter alone is as it is."""
    first, *rest = parts
    if not rest:
        return first
    continued = [part[0].lower() + part[1:] for part in rest]
    return f"{', '.join([first, *continued[:-1]])}, and {continued[-1]}"


def _facts(scene: Scene) -> dict[str, str]:
    """What the vision tower names: the color in each cell, and the rest of the scene."""
    colors = {lesion.cell: lesion.color for lesion in scene.lesions}
    facts = {f"kvasir {cell}": colors.get(cell, "none") for cell in CELLS}
    return facts | {
        "kvasir kind": _values(scene, "kind"),
        "kvasir size": _values(scene, "size"),
        "kvasir number": str(len(scene.lesions)),
        "kvasir procedure": scene.procedure,
        "kvasir instrument": str(scene.instrument),
        "kvasir box": str(scene.box),
        "kvasir text": str(scene.text),
        "kvasir landmark": f"{scene.landmark} {scene.landmark_cell}" if scene.landmark else "none",
    }


def _scene(draw: random.Random) -> Scene:
    """A random scene; one without lesions may have a landmark."""
    lesions = _lesions(draw)
    procedure = _procedure(draw, lesions)
    instrument = draw.choice((None, None, "polyp snare", "biopsy forceps"))
    box = draw.choice((None, None, "green", "black"))
    has_text = draw.random() < 0.5
    landmark = None if lesions else draw.choice((None, "z-line", "cecum"))
    return Scene(
        img_id="",
        procedure=procedure,
        lesions=lesions,
        instrument=instrument,
        box=box,
        text=has_text,
        landmark=landmark,
        landmark_cell=draw.choice(("center", "center-left")) if landmark else "center",
    )


def _lesions(draw: random.Random) -> tuple[Lesion, ...]:
    """Up to three polyps or an ulcer, of one color and mostly of one size."""
    kind, color = draw.choice(("polyp", "polyp", "ulcer")), draw.choice(list(COLORS))
    number = draw.choice((0, 0, 1, 1, 1, 2, 3)) if kind == "polyp" else 1
    cells = sorted(draw.sample(CELLS, number), key=CELLS.index)
    sizes = sorted(_sizes(draw, number), key=list(SIZES).index)
    pairs = zip(sizes, cells, strict=True)
    return tuple(Lesion(kind, color, size, cell) for size, cell in pairs)


def _sizes(draw: random.Random, number: int) -> list[str]:
    if draw.random() < 0.3:
        return draw.choices(list(SIZES), k=number)
    return [draw.choice(list(SIZES))] * number


def _procedure(draw: random.Random, lesions: tuple[Lesion, ...]) -> str:
    """Polyps are seen in a colonoscopy, ulcers in a gastroscopy."""
    if not lesions:
        return "colonoscopy" if draw.random() < 0.5 else "gastroscopy"
    return "colonoscopy" if lesions[0].kind == "polyp" else "gastroscopy"

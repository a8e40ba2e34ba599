"""Rows like those of Kvasir-VQA-x1's test set: references of one to three clauses, and predictions
that are the references after a few random edits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

LEVEL_SIZES = {1: 5548, 2: 5261, 3: 5213}
QUESTIONS_PER_IMAGE = 24

COLORS = [
    "pink",
    "red",
    "white",
    "yellow",
    "brown",
    "pink and red",
    "whitish",
    "violet",
    "green",
    "black",
]
PLACES = [
    "center",
    "upper-left",
    "upper-center",
    "upper-right",
    "center-left",
    "center-right",
    "lower-left",
]
PLACES += ["lower-center", "lower-right"]
COUNTS = ["one", "two", "three", "four", "no", "several"]
LANDMARKS = ["cecum", "ileum", "pylorus", "z-line", "no anatomical landmark"]
TOOLS = ["biopsy forceps", "polyp snare", "metal clip", "tube", "injection needle", "no instrument"]
FINDINGS = [
    "a polyp",
    "esophagitis",
    "ulcerative colitis",
    "Barrett's esophagus",
    "hemorrhoids",
    "no abnormality",
]
SIZES = ["less than 5 mm", "5 to 10 mm", "11 to 20 mm", "more than 20 mm"]
POLYPS = ["Paris Ip", "Paris Is", "Paris IIa", "Paris IIa+c", "no polyp"]
YES_NO = ["", "not "]

# class slug -> (phrasings with one slot, values of the slot)
CLASSES: dict[str, tuple[list[str], list[str]]] = {
    "polyp_type": (["the polyp is classified as {}", "a polyp of type {} is visible"], POLYPS),
    "polyp_removal_status": (["the polyps have {}been removed", "removal is {}complete"], YES_NO),
    "text_presence": (
        ["text is {}present in the image", "written text does {}appear on screen"],
        YES_NO,
    ),
    "box_artifact_presence": (
        ["a green and black box artifact is {}visible", "the box is {}shown"],
        YES_NO,
    ),
    "landmark_presence": (
        ["the landmark identified is the {}", "evidence of {} can be seen"],
        LANDMARKS,
    ),
    "abnormality_color": (["the abnormality appears {}", "its color is predominantly {}"], COLORS),
    "polyp_count": (["{} polyps were identified", "there are {} polyps in the image"], COUNTS),
    "instrument_location": (["the instrument is located in the {}", "the tool lies {}"], PLACES),
    "procedure_type": (
        ["the image was taken during a {}", "the procedure is a {}"],
        ["gastroscopy", "colonoscopy"],
    ),
    "instrument_presence": (["{} is present", "the image shows {}"], TOOLS),
    "abnormality_presence": (
        ["{} was detected", "findings consistent with {} are noted"],
        FINDINGS,
    ),
    "finding_presence": (
        ["the image does {}contain any finding", "findings are {}present"],
        YES_NO,
    ),
    "finding_count": (["{} findings are present", "a total of {} findings were noted"], COUNTS),
    "instrument_count": (
        ["{} instruments are in view", "the image contains {} instruments"],
        COUNTS,
    ),
    "abnormality_location": (
        ["the abnormality is in the {} region", "it is found in the {}"],
        PLACES,
    ),
    "landmark_color": (["the anatomical landmark is {}", "the landmark shows a {} color"], COLORS),
    "landmark_location": (
        ["the anatomical landmark lies in the {}", "it sits in the {} area"],
        PLACES,
    ),
    "polyp_size": (["the polyp measures {}", "its estimated size is {}"], SIZES),
}
OPENINGS = [
    "",
    "On inspection, ",
    "In this endoscopic view, ",
    "The image shows that ",
    "Evaluation reveals that ",
]
OPENINGS += ["As seen in the frame, ", "During the examination, ", "Upon review: ", "Here, "]
LINKS = [", and ", "; ", ", while ", ". Additionally, ", ", with the note that "]
SWAPS = {
    "identified": "detected",
    "present": "visible",
    "image": "picture",
    "located": "situated",
    "shows": "displays",
}
SWAPS |= {
    "polyp": "growth",
    "polyps": "polyp",
    "seen": "observed",
    "detected": "found",
    "contains": "includes",
}


@dataclass(frozen=True)
class Row:
    """One scored sample."""

    prediction: str
    reference: str
    level: int
    classes: tuple[str, ...]
    image: str


def generate(count: int, seed: int) -> list[Row]:
    """Rows with the published share of levels; the prediction is the reference after a few random
    edits.
    """
    draw = random.Random(seed)
    images = -(-count // QUESTIONS_PER_IMAGE)
    rows = []
    for number, level in enumerate(_levels(count)):
        names = [name for name in CLASSES if level == 1 or name != "finding_presence"]
        classes = tuple(draw.choices(names, k=level))  # a class may be named twice, as in the data
        clauses = [_clause(draw, name) for name in classes]
        opening, link = draw.choice(OPENINGS), draw.choice(LINKS)
        reference = sentence([clause.text for clause in clauses], opening, link)
        prediction = reference
        if draw.random() > 0.15:
            prediction = _prediction(draw, clauses, opening, link)
        rows.append(Row(prediction, reference, level, classes, f"image{number % images}"))
    return rows


@dataclass(frozen=True)
class _Clause:
    """A phrasing of a class with a slot, and the value in it."""

    name: str
    phrasing: str
    value: str

    @property
    def text(self) -> str:
        return self.phrasing.format(self.value)


def _levels(count: int) -> list[int]:
    """The level of each row; what rounding leaves is of level 3."""
    total = sum(LEVEL_SIZES.values())
    levels: list[int] = []
    for level, size in LEVEL_SIZES.items():
        levels += [level] * round(size * count / total)
    levels += [3] * count
    return levels[:count]


def _clause(draw: random.Random, name: str) -> _Clause:
    phrasings, values = CLASSES[name]
    return _Clause(name, draw.choice(phrasings), draw.choice(values))


def _prediction(draw: random.Random, clauses: list[_Clause], opening: str, link: str) -> str:
    """The clauses with some wrong values, other phrasings, swapped words, and words left out."""
    guesses = []
    for clause in clauses:
        phrasings, values = CLASSES[clause.name]
        is_wrong = draw.random() < 0.35
        phrasing = draw.choice(phrasings) if draw.random() < 0.4 else clause.phrasing
        guesses.append(phrasing.format(draw.choice(values) if is_wrong else clause.value))
    if draw.random() < 0.5:
        opening, link = draw.choice(OPENINGS), draw.choice(LINKS)
    words = sentence(guesses, opening, link).split()
    words = [SWAPS.get(word, word) if draw.random() < 0.4 else word for word in words]
    return " ".join(word for word in words if draw.random() > 0.04)


def sentence(clauses: list[str], opening: str, link: str) -> str:
    """The clauses as one capitalized answer."""
    text = opening + link.join(clauses) + "."
    return text[0].upper() + text[1:]

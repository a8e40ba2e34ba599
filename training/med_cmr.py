"""Those questions of the miniature that another drawing answers in another way, with other
drawings.

Questions that only knowledge answers ("Why is there a black band below the echo?") are not taught.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence

from medtasks.benchmarks.med_cmr.records import FILES

from .drawings import BENCHMARKS
from .lesson import Drawing, Lesson
from .med_cmr_scenes import (
    LINES,
    SIGN_PLACES,
    Draw,
    content_of_large_cell,
    content_of_ring,
    course_of_finding,
    crescent_direction,
    end_of_trail,
    endoscopic_finding,
    jagged_edge,
    line_of_object,
    panel_and_side,
    panel_with_lesion,
    place_beside_cyst,
    place_of_large_cell,
    relation_of_findings,
    shape_below_disc,
    side_of_bright_spot,
    sign_in_round_area,
    spots,
    thick_end,
    veil_color,
)

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
            picture = Drawing(scene(draw, right), {f"med_cmr {question}": right})
            yield Lesson("med_cmr/mcq.j2", fields, (picture,), "ABCDE"[order.index(right)])
            if draw.random() < 0.5:
                yield Lesson(
                    "med_cmr/open.j2", {"question": question}, (picture,), f"Final answer: {right}"
                )


_SCENES: Mapping[str, tuple[Sequence[str], Draw]] = {
    "Where is the small round opacity in the picture?": ((), spots("cxr", 0.024, "#b8b8b8")),
    "In which part of the lungs does the bright dot lie?": (
        (),
        spots("chest ct", 0.02, "#bdbdbd"),
    ),
    "Where does the large cell lie?": ((), place_of_large_cell),
    "What does the large pale cell hold?": ((), content_of_large_cell),
    "How many polyps can be seen?": ((), spots("endoscopy", 0.04, "#fad1c7")),
    "How many nodules are there?": ((), spots("cxr", 0.024, "#b8b8b8")),
    "Which finding is present?": ((), endoscopic_finding),
    "What does the ring hold?": ((), content_of_ring),
    "Which edge of the patch has teeth?": (
        ("the left one", "the right one", "the upper one", "none of them"),
        jagged_edge,
    ),
    "Which colour does the area near the lower edge have?": ((), veil_color),
    "Where does the calcification lie, seen from the cyst?": ((), place_beside_cyst),
    "On which side of the picture is the bright spot?": ((), side_of_bright_spot),
    "How do the two findings lie to each other?": (
        ("one above the other", "at the same height", "one inside the other", "touching"),
        relation_of_findings,
    ),
    "In which panel, and on which side of the brain, is the bright area?": ((), panel_and_side),
    "Which panel shows a lesion?": (
        ("the CT alone", "both", "neither", "the MRI alone"),
        panel_with_lesion,
    ),
    "How does the opacity change from day 1 to day 90?": course_of_finding(
        *("cxr", "#b3b3b3", 0.16),
        {
            "it grows": "grows",
            "it stays": "stays",
            "it moves to the other lung": "moves",
            "it shrinks": "shrinks",
        },
    ),
    "If this goes on, what will a later radiograph show?": course_of_finding(
        *("cxr", "#b3b3b3", 0.16),
        {"a smaller opacity or none": "shrinks", "a larger opacity": "grows"},
    ),
    "What changes in the patch over the three days?": course_of_finding(
        *("dermoscopy", "#5c3624", 0.3),
        {"its colour": "pales", "its place": "moves", "its width": "grows", "nothing": "stays"},
    ),
    "If this goes on, what will a later view show?": course_of_finding(
        *("dermoscopy", "#5c3624", 0.3),
        {"a narrower patch": "shrinks", "a paler patch": "pales", "a wider patch": "grows"},
    ),
    "Which shape lies below the optic disc?": ((), shape_below_disc),
    "Where do the horns of the crescent point?": (
        ("to the left", "up", "to the right", "down"),
        crescent_direction,
    ),
    "Which end of the thread is thick?": (("the left one", "the right one"), thick_end),
    "On which line does the bright object lie?": (list(LINES), line_of_object),
    "Which sign does the grey round area show?": ((), sign_in_round_area),
    "Where does the sign lie?": (list(SIGN_PLACES), sign_in_round_area),
    "What sits at the right end of the trail?": (
        ("a small dark triangle", "a blue dot", "a ring", "nothing"),
        end_of_trail,
    ),
}
"""Question, the options that can be drawn (none named: all), and how."""

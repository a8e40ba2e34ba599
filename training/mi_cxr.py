"""Radiographs of other invented patients, and questions of every type about five visits of one of
them.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .drawings.mi_cxr import FINDINGS, draw_radiograph
from .lesson import Claim, Lesson, Shown

PATIENTS = tuple(f"p{number:08}" for number in range(101, 141))
"""None has the build of one of the miniature's patients, 1 to 28."""
CHANGES = ("newly appears", "resolves", "worsens", "improves", "is unchanged", "remains absent")
_EVENTS = {"newly appears": ("newly appear", "emergence"), "resolves": ("resolve", "resolution")}
_INTERVALS = tuple(f"T{visit} → T{visit + 1}" for visit in range(1, 5))
Changes = Mapping[str, list[str]]
"""What happens to each finding in each of the four intervals."""


def lessons(seed: int) -> Iterator[Lesson]:
    """Several questions about five visits of each patient."""
    draw = random.Random(seed)
    while True:
        patient, first = draw.choice(PATIENTS), draw.randrange(3)
        courses = {finding: _course(draw) for finding in FINDINGS}
        changes = {
            finding: [_happened(*two) for two in pairwise(course)]
            for finding, course in courses.items()
        }
        pictures = tuple(
            _shown(
                patient, (first + visit) % 3, tuple(courses[finding][visit] for finding in FINDINGS)
            )
            for visit in range(5)
        )
        hints = tuple(_known(changes, visit) for visit in range(5))
        for finding in FINDINGS:
            question = f"Which option describes the course of the {finding} over all five visits?"
            yield Lesson(
                "mi_cxr/report.j2",
                {"question": question},
                pictures,
                _told(finding, changes[finding]),
                hints,
            )
        for ask, number in (
            (_interval, 6),
            (_order, 3),
            (_change, 4),
            (_statement, 3),
            (_summary, 2),
        ):
            for _ in range(number):
                asked = ask(draw, changes)
                if asked:
                    question, choices, right, *events = asked
                    fields = {
                        "question": question,
                        "choices": dict(zip("ABCDE", choices, strict=True)),
                    }
                    claims = tuple(_claims(choices, changes))
                    about = {
                        f"asked {number}": " ".join(event) for number, event in enumerate(events)
                    }
                    for number, (finding, change) in enumerate(events):
                        about |= {
                            f"event {number} {at}": str(now == change)
                            for at, now in enumerate(changes[finding])
                        }
                    yield Lesson(
                        "mi_cxr/mcq.j2", fields, pictures, "ABCDE"[right], hints, claims, about
                    )


@functools.lru_cache(20000)
def _shown(patient: str, visit: int, severities: tuple[int, ...]) -> Shown:
    levels = dict(zip(FINDINGS, severities, strict=True))
    picture = draw_radiograph(patient, visit, levels).convert("RGB")
    return Shown(picture, {f"mi_cxr {finding}": str(level) for finding, level in levels.items()})


def _course(draw: random.Random) -> list[int]:
    """Severities at five visits."""
    levels = [draw.choice((0, 0, 1, 2, 3))]
    while len(levels) < 5:
        levels.append(levels[-1] if draw.random() < 0.4 else draw.choice((0, 0, 1, 2, 3)))
    return levels


def _happened(before: int, after: int) -> str:
    if before == after:
        return "is unchanged" if before else "remains absent"
    if 0 in (before, after):
        return "resolves" if before else "newly appears"
    return "worsens" if after > before else "improves"


def _known(changes: Changes, visit: int) -> dict[str, str]:
    """The change since the visit before, and whether it is the first of its kind."""
    facts: dict[str, str] = {}
    for finding, course in changes.items() if visit else ():
        *before, now = course[:visit]
        facts |= {f"mi_cxr {finding}": now, f"mi_cxr {finding} again": str(now in before)}
    return facts


def _claims(choices: Sequence[str], changes: Changes) -> Iterator[Claim]:
    for choice in choices[:4]:
        for claim in re.finditer(
            rf"(?:Between T(\d).*?)?({'|'.join(CHANGES)})(?: from T(\d) to T\d)?", choice
        ):
            if interval := claim[1] or claim[3]:
                finding = next(candidate for candidate in FINDINGS if candidate in choice)
                yield Claim(claim[0], finding, changes[finding][int(interval) - 1], claim[2])


Asked = tuple[Any, ...] | None
"""Question, options, the right one's place and the changes asked about; None if there is no such
question.
"""


def _interval(draw: random.Random, changes: Changes) -> Asked:
    finding, change, time = (
        draw.choice(FINDINGS),
        draw.choice(list(_EVENTS)),
        draw.choice(("", "first", "second")),
    )
    intervals = [
        interval
        for interval, visible_change in enumerate(changes[finding])
        if visible_change == change
    ]
    if not time and len(intervals) > 1:
        return None
    right = [*intervals, 4, 4][time == "second"]
    if right == 4 and draw.random() < 0.8:  # otherwise half of all answers were E
        return None
    verb, event = _EVENTS[change]
    question = (
        f"In which interval does the {finding} {verb}{f' for the {time} time' if time else ''}?"
    )
    return (
        question,
        (*_INTERVALS, f"There is no {time} {event}" if time else "None of these intervals"),
        right,
        (finding, change),
    )


def _order(draw: random.Random, changes: Changes) -> Asked:
    finding, (first, second) = draw.choice(FINDINGS), draw.sample(list(_EVENTS), 2)
    course = changes[finding]
    start = course.index(first) if first in course else 4
    end = course.index(second, start + 1) if second in course[start + 1 :] else None
    pairs = ("T2, T3", "T2, T4", "T3, T4", "T3, T5")
    right = "" if end is None else f"T{start + 2}, T{end + 2}"
    if (right and right not in pairs) or (not right and draw.random() < 0.9):
        return None
    question = (
        f"At which visits is the {_EVENTS[first][1]} and then the {_EVENTS[second][1]} of the "
        f"{finding} first seen (first event, second event)?"
    )
    return (
        question,
        (*pairs, "There is no such order of events"),
        pairs.index(right) if right else 4,
        (finding, first),
        (finding, second),
    )


def _change(draw: random.Random, changes: Changes) -> Asked:
    finding, start = draw.choice(FINDINGS), draw.randrange(4)
    right = min(CHANGES.index(changes[finding][start]), 4)
    if right == 4 and draw.random() < 0.6:
        return None
    options = tuple(f"The {finding} {change}." for change in CHANGES[:4])
    question = f"What happens to the {finding} between T{start + 1} and T{start + 2}?"
    return question, (*options, "There is no change in this interval"), right


def _statement(draw: random.Random, changes: Changes) -> Asked:
    options, right = [], draw.randrange(5)
    for number in range(4):
        finding, start = draw.choice(FINDINGS), draw.randrange(4)
        change = changes[finding][start]
        if number != right:
            change = draw.choice([candidate for candidate in CHANGES if candidate != change])
        options.append(f"Between T{start + 1} and T{start + 2}, the {finding} {change}.")
    question = "Which statement about a change between two consecutive visits is true?"
    return question, (*options, "None of these statements is true"), right


def _summary(draw: random.Random, changes: Changes) -> Asked:
    one, right, options = draw.choice(FINDINGS), draw.randrange(5), list[str]()
    several = draw.random() < 0.5
    for number, finding in enumerate(FINDINGS if several else (one,) * 4):
        truth = _told(finding, changes[finding])
        claimed = list(changes[finding])
        while number != right and (
            _told(finding, claimed) == truth or _told(finding, claimed) in options
        ):
            claimed[draw.randrange(4)] = draw.choice(CHANGES)
        options.append(_told(finding, claimed))
    named = "abnormality it names" if several else one
    last = (
        "None of these descriptions is right" if several else "None of these describes the course"
    )
    return (
        f"Which option describes the course of the {named} over all five visits?",
        (*options, last),
        right,
    )


def _told(finding: str, changes: list[str]) -> str:
    parts = [
        f"{change} from T{visit} to T{visit + 1}" for visit, change in enumerate(changes, start=1)
    ]
    return f"The {finding} {', '.join(parts[:3])}, and {parts[3]}."

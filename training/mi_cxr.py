"""Radiographs of other invented patients, and questions of every type about five visits of one of them."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping
from itertools import pairwise

from medtasks.benchmarks.mi_cxr.mini.radiograph import FINDINGS, draw_radiograph

from .lesson import Lesson, Shown

PATIENTS = tuple(f"p{number:08}" for number in range(7, 13))
"""Their build is that of none of the miniature's patients, 1 to 6."""
CHANGES = ("newly appears", "resolves", "worsens", "improves", "is unchanged", "remains absent")
_INTERVALS = tuple(f"T{visit} → T{visit + 1}" for visit in range(1, 5))
_NUMBERS = {1: "first", 2: "second"}
Courses = Mapping[str, tuple[int, ...]]


def lessons(seed: int) -> Iterator[Lesson]:
    """Several questions about five visits of each patient."""
    draw = random.Random(seed)
    while True:
        patient, first = draw.choice(PATIENTS), draw.randrange(3)
        courses = {finding: _course(draw) for finding in FINDINGS}
        shown = tuple(
            _shown(patient, (first + visit) % 3, tuple(courses[finding][visit] for finding in FINDINGS))
            for visit in range(5)
        )
        for finding in draw.sample(FINDINGS, 2):
            question = f"Which option describes the course of the {finding} over all five visits?"
            answer = _told(finding, _changes(courses[finding]))
            yield Lesson("mi_cxr/report.j2", {"question": question}, shown, answer)
        for ask, number in ((_interval, 3), (_order, 1), (_change, 3), (_statement, 3), (_summary, 1)):
            for _ in range(number):
                asked = ask(draw, courses)
                if asked:
                    question, choices, letter = asked
                    fields = {"question": question, "choices": dict(zip("ABCDE", choices, strict=True))}
                    yield Lesson("mi_cxr/mcq.j2", fields, shown, letter)


@functools.lru_cache(20000)
def _shown(patient: str, visit: int, severities: tuple[int, ...]) -> Shown:
    levels = dict(zip(FINDINGS, severities, strict=True))
    return Shown(
        draw_radiograph(patient, visit, levels).convert("RGB"),
        {f"mi_cxr {finding}": str(level) for finding, level in levels.items()},
    )


def _course(draw: random.Random) -> tuple[int, ...]:
    """Severities at five visits; half of all visits are like the one before."""
    levels = [draw.choice((0, 0, 1, 2, 3))]
    while len(levels) < 5:
        levels.append(levels[-1] if draw.random() < 0.4 else draw.choice((0, 0, 1, 2, 3)))
    return tuple(levels)


def _changes(course: tuple[int, ...]) -> list[str]:
    return [_happened(before, after) for before, after in pairwise(course)]


def _happened(before: int, after: int) -> str:
    if before == after:
        return "is unchanged" if before else "remains absent"
    if 0 in (before, after):
        return "resolves" if before else "newly appears"
    return "worsens" if after > before else "improves"


Asked = tuple[str, tuple[str, ...], str] | None
"""Question, options and the right one's letter; None if this course has no such question."""


def _interval(draw: random.Random, courses: Courses) -> Asked:
    finding, place = draw.choice(FINDINGS), draw.choice((0, 1, 2))
    change, event, does = draw.choice(
        (("newly appears", "emergence", "newly appear"), ("resolves", "resolution", "resolve"))
    )
    found = [number for number, one in enumerate(_changes(courses[finding])) if one == change]
    if not place and len(found) > 1:
        return None
    right = found[max(place, 1) - 1] if len(found) >= max(place, 1) else 4
    if right == 4 and draw.random() < 0.8:  # otherwise half of all answers were E
        return None
    question = f"In which interval does the {finding} {does}{f' for the {_NUMBERS[place]} time' if place else ''}?"
    last = f"There is no {_NUMBERS[place]} {event}" if place else "None of these intervals"
    return question, (*_INTERVALS, last), "ABCDE"[right]


def _order(draw: random.Random, courses: Courses) -> Asked:
    finding, forward = draw.choice(FINDINGS), draw.random() < 0.5
    names = {"newly appears": "emergence", "resolves": "resolution"}
    first, second = names if forward else reversed(names)
    changes = _changes(courses[finding])
    start = changes.index(first) if first in changes else 4
    end = next((number for number in range(start + 1, 4) if changes[number] == second), None)
    pairs = ("T2, T3", "T2, T4", "T3, T4", "T3, T5")
    right = "" if end is None else f"T{start + 2}, T{end + 2}"
    if (right and right not in pairs) or (not right and draw.random() < 0.9):
        return None
    question = (
        f"At which visits is the {names[first]} and then the {names[second]} of the {finding} first seen "
        "(first event, second event)?"
    )
    return question, (*pairs, "There is no such order of events"), "ABCDE"[pairs.index(right) if right else 4]


def _change(draw: random.Random, courses: Courses) -> Asked:
    finding, start = draw.choice(FINDINGS), draw.randrange(4)
    happened = _changes(courses[finding])[start]
    if happened in CHANGES[4:] and draw.random() < 0.6:
        return None
    options = tuple(f"The {finding} {change}." for change in CHANGES[:4])
    question = f"What happens to the {finding} between T{start + 1} and T{start + 2}?"
    return question, (*options, "There is no change in this interval"), "ABCDE"[min(CHANGES.index(happened), 4)]


def _statement(draw: random.Random, courses: Courses) -> Asked:
    options = []
    right = draw.randrange(5)
    for number in range(4):
        finding, start = draw.choice(FINDINGS), draw.randrange(4)
        change = _changes(courses[finding])[start]
        if number != right:
            change = draw.choice([other for other in CHANGES if other != change])
        options.append(f"Between T{start + 1} and T{start + 2}, the {finding} {change}.")
    question = "Which statement about a change between two consecutive visits is true?"
    return question, (*options, "None of these statements is true"), "ABCDE"[right]


def _summary(draw: random.Random, courses: Courses) -> Asked:
    several, right = draw.random() < 0.5, draw.randrange(5)
    findings = FINDINGS if several else (draw.choice(FINDINGS),) * 4
    options: list[str] = []
    for number, finding in enumerate(findings):
        changes = _changes(courses[finding])
        while (
            number != right
            and (text := _told(finding, changes))
            and (text == _told(finding, _changes(courses[finding])) or text in options)
        ):
            changes[draw.randrange(4)] = draw.choice(CHANGES)
        options.append(_told(finding, changes))
    if several:
        question = "Which option describes the course of the abnormality it names over all five visits?"
        return question, (*options, "None of these descriptions is right"), "ABCDE"[right]
    question = f"Which option describes the course of the {findings[0]} over all five visits?"
    return question, (*options, "None of these describes the course"), "ABCDE"[right]


def _told(finding: str, changes: list[str]) -> str:
    parts = [f"{change} from T{visit} to T{visit + 1}" for visit, change in enumerate(changes, start=1)]
    return f"The {finding} {', '.join(parts[:3])}, and {parts[3]}."


_SPANS = tuple((f"T{visit}", f"T{visit + 1}") for visit in range(1, 5))
PHRASES = [
    *(f"Between {a} and {b}, the {finding} {change}." for a, b in _SPANS for finding in FINDINGS for change in CHANGES),
    *(
        f"The {finding} {change}{end}"
        for finding in FINDINGS
        for change in CHANGES
        for end in (".", " from T1 to T2, ")
    ),
    *(
        f"{change} from {a} to {b}{end}"
        for (a, b), end in zip(_SPANS[1:], (", ", ", and ", "."), strict=True)
        for change in CHANGES
    ),
    *(f"In which interval does the {finding} {does}" for finding in FINDINGS for does in ("newly appear", "resolve")),
    *(f"{first} of the {finding} first seen" for finding in FINDINGS for first in ("resolution", "emergence")),
    *("At which visits is the ", " and then the ", " (first event, second event)?"),
    *(f"What happens to the {finding} between " for finding in FINDINGS),
    *(f"{a} and {b}?" for a, b in _SPANS),
    *(f"course of the {finding}" for finding in FINDINGS),
    *("Which option describes the ", "course of the abnormality it names", " over all five visits?"),
    *(f"There is no {number} {event}" for number in _NUMBERS.values() for event in ("emergence", "resolution")),
    *("There is no such order of events", "None of these describes the course", "None of these descriptions is right"),
    *("for the first time?", "for the second time?"),
]
"""What the tokenizer has one token for."""

"""Radiographs of other invented patients, and questions of every type about five visits of one of
them.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .drawings.mi_cxr import FINDINGS, draw_radiograph
from .lesson import Claim, Drawing, Lesson

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
        changes: dict[str, list[str]] = {}
        for finding, course in courses.items():
            changes[finding] = [_change_between(*severities) for severities in pairwise(course)]
        pictures = []
        for visit in range(5):
            severities = tuple(courses[finding][visit] for finding in FINDINGS)
            pictures.append(_radiograph(patient, (first + visit) % 3, severities))
        hints = tuple(_known(changes, visit) for visit in range(5))
        for finding in FINDINGS:
            question = f"Which option describes the course of the {finding} over all five visits?"
            yield Lesson(
                template="mi_cxr/report.j2",
                fields={"question": question},
                shown=tuple(pictures),
                answer=_description(finding, changes[finding]),
                known=hints,
            )
        for question in _questions(draw, changes):
            choices = dict(zip("ABCDE", question.options, strict=True))
            yield Lesson(
                template="mi_cxr/mcq.j2",
                fields={"question": question.text, "choices": choices},
                shown=tuple(pictures),
                answer="ABCDE"[question.right],
                known=hints,
                claims=tuple(_claims(question.options, changes)),
                asked=_asked(question.events, changes),
            )


@dataclass(frozen=True)
class Question:
    """A question with its options, the place of the right one, and the changes it asks about: each
    a finding and what happens to it.
    """

    text: str
    options: tuple[str, ...]
    right: int
    events: tuple[tuple[str, str], ...] = ()


def _questions(draw: random.Random, changes: Changes) -> Iterator[Question]:
    """Questions of every type about a patient."""
    for ask, number in (
        (_interval, 6),
        (_order, 3),
        (_change, 4),
        (_statement, 3),
        (_summary, 2),
    ):
        for _ in range(number):
            question = ask(draw, changes)
            if question is not None:
                yield question


def _asked(events: Sequence[tuple[str, str]], changes: Changes) -> dict[str, str]:
    """What to know at the end of the prompt: the changes asked about, and where they happen."""
    facts = {f"asked {number}": " ".join(event) for number, event in enumerate(events)}
    for number, (finding, change) in enumerate(events):
        for interval, happened in enumerate(changes[finding]):
            facts[f"event {number} {interval}"] = str(happened == change)
    return facts


@functools.lru_cache(20000)
def _radiograph(patient: str, visit: int, severities: tuple[int, ...]) -> Drawing:
    levels = dict(zip(FINDINGS, severities, strict=True))
    picture = draw_radiograph(patient, visit, levels).convert("RGB")
    return Drawing(picture, {f"mi_cxr {finding}": str(level) for finding, level in levels.items()})


def _course(draw: random.Random) -> list[int]:
    """Severities at five visits."""
    levels = [draw.choice((0, 0, 1, 2, 3))]
    while len(levels) < 5:
        levels.append(levels[-1] if draw.random() < 0.4 else draw.choice((0, 0, 1, 2, 3)))
    return levels


def _change_between(before: int, after: int) -> str:
    """What happens to a finding between visits with these severities."""
    if before == after == 0:
        return "remains absent"
    if before == after:
        return "is unchanged"
    if before == 0:
        return "newly appears"
    if after == 0:
        return "resolves"
    return "worsens" if after > before else "improves"


def _known(changes: Changes, visit: int) -> dict[str, str]:
    """The change since the visit before, and whether it is the first of its kind."""
    facts: dict[str, str] = {}
    for finding, course in changes.items() if visit else ():
        *before, now = course[:visit]
        facts |= {f"mi_cxr {finding}": now, f"mi_cxr {finding} again": str(now in before)}
    return facts


_CLAIM = re.compile(rf"(?:Between T(\d).*?)?({'|'.join(CHANGES)})(?: from T(\d) to T\d)?")


def _claims(options: Sequence[str], changes: Changes) -> Iterator[Claim]:
    """What the first four options claim about an interval."""
    for option in options[:4]:
        for match in _CLAIM.finditer(option):
            interval = match[1] or match[3]
            if interval:
                finding = next(finding for finding in FINDINGS if finding in option)
                yield Claim(match[0], finding, changes[finding][int(interval) - 1], match[2])


def _interval(draw: random.Random, changes: Changes) -> Question | None:
    finding, change = draw.choice(FINDINGS), draw.choice(list(_EVENTS))
    time = draw.choice(("", "first", "second"))
    intervals = [
        interval for interval, happened in enumerate(changes[finding]) if happened == change
    ]
    if not time and len(intervals) > 1:
        return None
    right = [*intervals, 4, 4][time == "second"]
    if right == 4 and draw.random() < 0.8:  # otherwise half of all answers were E
        return None
    verb, event = _EVENTS[change]
    when, none = "", "None of these intervals"
    if time:
        when, none = f" for the {time} time", f"There is no {time} {event}"
    return Question(
        text=f"In which interval does the {finding} {verb}{when}?",
        options=(*_INTERVALS, none),
        right=right,
        events=((finding, change),),
    )


def _order(draw: random.Random, changes: Changes) -> Question | None:
    finding, (first, second) = draw.choice(FINDINGS), draw.sample(list(_EVENTS), 2)
    course = changes[finding]
    start = course.index(first) if first in course else 4
    end = course.index(second, start + 1) if second in course[start + 1 :] else None
    pairs = ("T2, T3", "T2, T4", "T3, T4", "T3, T5")
    right = "" if end is None else f"T{start + 2}, T{end + 2}"
    if right and right not in pairs:
        return None
    if not right and draw.random() < 0.9:
        return None
    return Question(
        text=(
            f"At which visits is the {_EVENTS[first][1]} and then the {_EVENTS[second][1]} of the "
            f"{finding} first seen (first event, second event)?"
        ),
        options=(*pairs, "There is no such order of events"),
        right=pairs.index(right) if right else 4,
        events=((finding, first), (finding, second)),
    )


def _change(draw: random.Random, changes: Changes) -> Question | None:
    finding, start = draw.choice(FINDINGS), draw.randrange(4)
    right = min(CHANGES.index(changes[finding][start]), 4)
    if right == 4 and draw.random() < 0.6:
        return None
    options = [f"The {finding} {change}." for change in CHANGES[:4]]
    return Question(
        text=f"What happens to the {finding} between T{start + 1} and T{start + 2}?",
        options=(*options, "There is no change in this interval"),
        right=right,
    )


def _statement(draw: random.Random, changes: Changes) -> Question:
    options, right = [], draw.randrange(5)
    for number in range(4):
        finding, start = draw.choice(FINDINGS), draw.randrange(4)
        change = changes[finding][start]
        if number != right:
            change = draw.choice([candidate for candidate in CHANGES if candidate != change])
        options.append(f"Between T{start + 1} and T{start + 2}, the {finding} {change}.")
    return Question(
        text="Which statement about a change between two consecutive visits is true?",
        options=(*options, "None of these statements is true"),
        right=right,
    )


def _summary(draw: random.Random, changes: Changes) -> Question:
    single, right = draw.choice(FINDINGS), draw.randrange(5)
    findings, subject = [single] * 4, single
    none = "None of these describes the course"
    if draw.random() < 0.5:
        findings, subject = list(FINDINGS), "abnormality it names"
        none = "None of these descriptions is right"
    options: list[str] = []
    for number, finding in enumerate(findings):
        truth = _description(finding, changes[finding])
        course = list(changes[finding])
        while number != right and _description(finding, course) in (truth, *options):
            course[draw.randrange(4)] = draw.choice(CHANGES)
        options.append(_description(finding, course))
    return Question(
        text=f"Which option describes the course of the {subject} over all five visits?",
        options=(*options, none),
        right=right,
    )


def _description(finding: str, changes: list[str]) -> str:
    parts = []
    for visit, change in enumerate(changes, start=1):
        parts.append(f"{change} from T{visit} to T{visit + 1}")
    return f"The {finding} {', '.join(parts[:3])}, and {parts[3]}."

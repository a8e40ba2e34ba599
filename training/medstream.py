"""The miniature's questions about other footage, whose events come at other times."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from PIL import Image

from .drawings.clips import draw_time_code
from .drawings.medstream import (
    LOOKS,
    RECORDS,
    VEILS,
    Footage,
    draw_moment,
)
from .lesson import Drawing, Lesson

Outcomes = tuple[tuple[str, str], ...]
"""What a window must show, most telling first, and the right response to it."""


def _if(looks: str, answer: str = "yes", otherwise: str = "no") -> Outcomes:
    return (looks, answer), ("", otherwise)


_OUTCOMES: Mapping[str, Outcomes] = {
    "Is a polyp in view now?": _if("polyp"),
    "Is a polyp in view?": _if("polyp"),
    "Is a clip placed?": _if("clip"),
    "Is there smoke in the field?": _if("smoke"),
    "Does bleeding occur?": _if("bleeding"),
    "What is the lesion?": _if("polyp", "polyp", "unanswerable"),
    "What does the picture show?": _if(
        "polyp", "A polyp on the wall of the colon.", "The wall of the colon."
    ),
    "Which finding is seen?": _if("spots", "red spots", "normal mucosa"),
    "Where is the endoscope?": _if("outside", "outside the patient", "inside the nose"),
    "What is in view at this moment?": (
        ("polyp grasper", "polyp and grasper"),
        *_if("polyp", "polyp", "nothing"),
    ),
    "Which finding comes into view, and what happens afterwards?": (
        ("polyp grasper", "A polyp comes into view and a grasper reaches for it."),
        *_if("polyp", "A polyp comes into view.", "unanswerable"),
    ),
    "Which instrument works in the field?": (("grasper", "grasper"), ("scissors", "scissors")),
    "Describe the instrument that works in the field.": (
        ("grasper", "A grasper with two short jaws comes in from the right."),
        ("scissors", "Scissors come in from the left."),
    ),
    "Which of these are used within the window?": (
        ("grasper scissors", "grasper; scissors"),
        *(("grasper", "grasper"), ("scissors", "scissors")),
    ),
    "What does the surgeon have in place at this moment?": (
        ("clip grasper", "A golden clip lies on the tissue, a grasper beside it."),
        *_if("clip", "A golden clip lies on the tissue.", "unanswerable"),
    ),
    "Which step follows?": _if("grasper", "A clip is placed on the tissue.", "unanswerable"),
    "What is most likely to come next?": (
        *(("redness", "bleeding"), ("grasper scissors", "bleeding")),
        ("grasper", "withdrawal of the grasper"),
    ),
    "Will smoke hide the field?": _if("smoke", "yes", "unanswerable"),
    "Which phase will the operation enter?": _if("redness", "bleeding control", "unanswerable"),
    "What will the surgeon have to deal with?": _if(
        "bleeding", "Bleeding in the nose.", "unanswerable"
    ),
    "Watch for smoke.": _if("smoke", "alert: smoke", "no_alert"),
    "Watch for bleeding.": _if("bleeding", "alert: bleeding", "no_alert"),
    "Watch for a second instrument.": _if(
        "grasper scissors", "alert: scissors have come in", "no_alert"
    ),
}
_TISSUES = ("#bc684e", "#ce7a64", "#c48046", "#d6ba96", "#b05450")
_SIZES = ((128, 96), (96, 96), (112, 84), (160, 120), (96, 72), (112, 112))


def lessons(seed: int) -> Iterator[Lesson]:
    """Each question in turn, with all of its answers equally often: a model must see the pictures
    to know which.
    """
    draw = random.Random(seed)
    asked = [record for record in _records() if record["question"].split("\n")[0] in _OUTCOMES]
    while True:
        for record in draw.sample(asked, len(asked)):
            outcomes = _OUTCOMES[record["question"].split("\n")[0]]
            times = _times(draw, picture=record["question"].startswith("What does the picture"))
            place = draw.randrange(len(outcomes))
            if record["task_mode"] == "streaming":  # what is watched for happens within 14 s
                place = int(draw.random() >= (times[-1] - times[0]) / 14)
            looks, answer = outcomes[place]
            there = _there(draw, looks, outcomes[:place])
            brief = record["temporal_mode"] == "retrospective"
            clip = Footage(
                *("lesson", "lesson", "lesson.mp4", (), 0),
                tissue=draw.choice(_TISSUES),
                shows={look: _shown_from(draw, times, brief) for look in there},
                size=draw.choice(_SIZES),
            )
            frames = tuple(_frame(clip, time) for time in times)
            yield Lesson(
                template="medstreambench/window.j2",
                fields=_fields(draw, record, times),
                shown=frames,
                answer=answer,
                known=_seen_so_far(frames),
            )


def _there(draw: random.Random, looks: str, more_telling: Outcomes) -> list[str]:
    """All that the window shows: ``looks``, perhaps others, but nothing that is more telling."""
    while True:
        more = [look for look in (*LOOKS, "smoke") if draw.random() < 0.2]
        there = {*looks.split(), *more}
        if not any(there.issuperset(needed.split()) for needed, _ in more_telling):
            return sorted(there)


def _records() -> list[dict[str, Any]]:
    records = []
    for path in sorted(RECORDS.glob("*.jsonl")):
        text, decoder = path.read_text(encoding="utf-8").strip(), json.JSONDecoder()
        while text:
            record, end = decoder.raw_decode(text)
            text = text[end:].lstrip()
            records.append(record)
    return records


def _times(draw: random.Random, picture: bool) -> list[float]:
    """The times of the frames of a window: every two seconds, and its end."""
    start = round(draw.uniform(0, 12), draw.choice((0, 1, 3)))
    length = 0 if picture else draw.choice((0, 2, 3, 4, 4, 4, 5, 5, 7, 9, 11, 13, 16))
    end = start + length
    return [start + 2 * step for step in range(math.ceil((end - start) / 2))] + [end]


def _shown_from(draw: random.Random, times: list[float], brief: bool) -> tuple[float, float]:
    """From when to when something is seen: from before the window or some frame of it on; if
    ``brief``, some frames.
    """
    start = draw.choice((0, 0, draw.randrange(len(times))))
    last = len(times) - 1
    if brief and draw.random() < 0.2:
        last = draw.randrange(start, len(times))
    from_time = times[start] if start else -math.inf
    to_time = math.inf if last == len(times) - 1 else times[last + 1]
    return from_time, to_time


def _fields(draw: random.Random, record: Mapping[str, Any], times: list[float]) -> dict[str, Any]:
    """What the prompt's template reads."""
    allowed = ["unanswerable", "<answer>"]
    if record["temporal_mode"] == "proactive":
        allowed = ["no_alert", "uncertain", "alert: <reason>"]
    return {
        **{name: record[name] for name in ("task_mode", "temporal_mode", "question")},
        "medium": "images" if draw.random() < 0.1 else "video",
        "times": times,
        "window_start": times[0],
        "window_end": times[-1],
        "query_time": times[-1],
        "options": record.get("choices", []),
        "multi_select": isinstance(record.get("answer"), list),
        "allowed_responses": allowed,
    }


def _frame(clip: Footage, time: float) -> Drawing:
    moment = Fraction(repr(time))
    picture = Image.fromarray(draw_time_code(draw_moment(clip, moment), int(moment * 1000)))
    there = {look for look, (start, end) in clip.shows.items() if start <= moment < end}
    return Drawing(picture, {f"medstream {look}": str(look in there) for look in (*LOOKS, *VEILS)})


def _seen_so_far(frames: Sequence[Drawing]) -> tuple[dict[str, str], ...]:
    """For each frame, what it or an earlier one shows."""
    seen = dict.fromkeys(frames[0].facts, "False")
    so_far = []
    for frame in frames:
        seen |= {name: state for name, state in frame.facts.items() if state == "True"}
        so_far.append(dict(seen))
    return tuple(so_far)

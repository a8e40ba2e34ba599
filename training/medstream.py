"""Footage of other clips than the miniature's, asked what it shows once, as a stream, or to raise an alert."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from PIL import Image

from medtasks.benchmarks.medstreambench.mini.footage import (
    ABDOMEN,
    CAPSULE,
    COLON,
    LOOKS,
    NOSE,
    PAD,
    VEILS,
    Footage,
    draw_moment,
)
from medtasks.data.mini.clips import draw_time_code

from .lesson import Lesson, Shown

_WINDOW = (
    "\n\nResponse protocol: Use nothing but the given window. Where it does not show enough, reply with exactly: "
    "unanswerable."
)
_STREAM = (
    "\n\nResponse protocol: Use what has been shown so far. Until it shows enough, reply with exactly: unanswerable. "
    "Then give the answer."
)
_ALERT = "\n\nResponse protocol: Reply no_alert, uncertain, or alert: followed by the reason."
_YES_NO = {
    "Is a polyp in view?": "polyp",
    "Is a polyp in view now?": "polyp",
    "Is there smoke in the field?": "smoke",
    "Is a clip placed?": "clip",
    "Does bleeding occur?": "bleeding",
}
_TOOLS = ("grasper", "scissors")
_SIZES = ((128, 96), (96, 96), (112, 84), (160, 120), (96, 72), (112, 112))
Asked = tuple[dict[str, Any], str]
"""Fields of the template, and the right response."""


def lessons(seed: int) -> Iterator[Lesson]:
    """Some questions about each clip."""
    draw = random.Random(seed)
    while True:
        start = round(draw.uniform(0, 12), draw.choice((0, 0, 1, 3)))
        end = start + draw.choice((0, 2, 3, 4, 4, 5, 7, 9, 11))
        times = [start + 2 * step for step in range(math.ceil((end - start) / 2))] + [end]
        seen = [name for name in (*LOOKS, "smoke") if draw.random() < 0.3]
        seen += ["outside"] * (draw.random() < 0.12)
        begins = (-math.inf, times[len(times) // 2], times[-1])
        clip = Footage(
            *("lesson", "lesson", "lesson.mp4", ()),
            tissue=draw.choice((ABDOMEN, COLON, CAPSULE, PAD, NOSE)),
            shows={name: (draw.choice(begins), math.inf) for name in seen},
            size=draw.choice(_SIZES),
        )
        shown = tuple(_shown(clip, time) for time in times)
        window = {"medium": "video", "times": times, "window_start": start, "window_end": end, "query_time": end}
        if draw.random() < 0.1:
            window["medium"] = "images"
        for fields, answer in draw.sample(list(_asked(seen)), 4):
            yield Lesson("medstreambench/window.j2", {**window, **fields}, shown, answer)


def _shown(clip: Footage, time: float) -> Shown:
    moment = Fraction(repr(time))
    picture = Image.fromarray(draw_time_code(draw_moment(clip, moment), int(moment * 1000)))
    there = {name for name, (begin, _) in clip.shows.items() if begin <= moment}
    return Shown(picture, {f"medstream {name}": str(name in there) for name in (*LOOKS, *VEILS)})


def _asked(seen: list[str]) -> Iterator[Asked]:
    """What can be asked about footage that shows ``seen`` at its end, all of it since some frame of the window."""
    for question, name in _YES_NO.items():
        yield _once(question, ["yes", "no"]), "yes" if name in seen else "no"
    tools = [tool for tool in _TOOLS if tool in seen]
    if len(tools) == 1:
        yield _once("Which instrument works in the field?", [*_TOOLS, "clip applier", "stapler"]), tools[0]
    if tools:
        question = "Which of these are used within the window?"
        yield _once(question, [*_TOOLS, "needle, curved"], multi_select=True), "; ".join(tools)
    places = ["outside the patient", "inside the nose"]
    yield _once("Where is the endoscope?", places), places["outside" not in seen]
    now = ["polyp", "polyp and grasper", "nothing"]
    if not ("grasper" in seen and "polyp" not in seen):
        right = 2 if "polyp" not in seen else int("grasper" in seen)
        yield _once("What is in view at this moment?", now, mode="present"), now[right]
    findings = ["red spots", "foreign body", "normal mucosa"]
    yield _once("Which finding is seen?", findings), findings[0 if "spots" in seen else 2]
    yield _stream("Will smoke hide the field?", ["yes", "no"]), "yes" if "smoke" in seen else "unanswerable"
    phases = ["preparation", "dissection", "bleeding control", "closure"]
    bleeds = "bleeding" in seen
    yield _stream("Which phase will the operation enter?", phases), phases[2] if bleeds else "unanswerable"
    answer = "Bleeding in the nose." if bleeds else "unanswerable"
    yield _stream("What will the surgeon have to deal with?", []), answer
    for name in ("smoke", "bleeding"):
        yield _alert(f"Watch for {name}."), f"alert: {name}" if name in seen else "no_alert"
    yield _alert("Watch for a second instrument."), "alert: scissors have come in" if len(tools) == 2 else "no_alert"


def _once(question: str, options: list[str], mode: str = "retrospective", multi_select: bool = False) -> dict[str, Any]:
    return {
        "task_mode": "single_turn",
        "temporal_mode": mode,
        "multi_select": multi_select,
        "options": options,
        "question": question + _WINDOW,
        "allowed_responses": ["unanswerable", "<answer>"],
    }


def _stream(question: str, options: list[str]) -> dict[str, Any]:
    same: Mapping[str, Any] = {"task_mode": "streaming", "temporal_mode": "future", "question": question + _STREAM}
    return {**_once(question, options), **same}


def _alert(question: str) -> dict[str, Any]:
    return {
        "task_mode": "streaming",
        "temporal_mode": "proactive",
        "options": [],
        "question": question + _ALERT,
        "allowed_responses": ["no_alert", "uncertain", "alert: <reason>"],
    }


PHRASES = [
    *_YES_NO,
    *dict.fromkeys(fields["question"].split("\n")[0] for fields, _ in _asked(["grasper"])),
    *("The image is a frame of a medical video, taken at ", "The images are "),
    *(" frames of a medical video, in order, taken at ", " s of the video. The question was put at "),
    *("The window that you may use runs from ", " s to "),
    *(" pictures of a sequence, in order, with the frame numbers ", "The image is the only one that you may use."),
    *("The window that you may use runs from frame ", " to frame "),
    "Reply with your answer; or with the one word unanswerable where the window does not show enough.",
    (
        "More than one option may be right. Reply with all that are, separated by semicolons, and nothing else; "
        "or with the one word unanswerable where the window does not show enough."
    ),
    *("Which of these are used within the window?", "Watch for a second instrument."),
]
"""What the tokenizer has one token for."""

"""A miniature MI-CXR: synthetic timelines, and every question type of the card derived from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.benchmarks.mi_cxr.mini.radiograph import FINDINGS, draw_radiograph
from medtasks.benchmarks.mi_cxr.prepare import prepare_mi_cxr
from medtasks.data.prepared import Prepared

__all__ = ["TIMELINES", "Window", "image_path", "mi_cxr_rows", "prepare_mini", "windows", "write_mi_cxr_source"]

LEFT, RIGHT, OPACITY, HEART = FINDINGS
LETTERS = "ABCDE"
INTERVALS = tuple(f"T{number} → T{number + 1}" for number in range(1, 5))

TIMELINES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "p00000001": {LEFT: (0, 1, 2, 1, 0, 0, 2), OPACITY: (0, 0, 2, 0, 3, 3, 0), HEART: (1, 1, 1, 2, 2, 2, 2)},
    "p00000002": {RIGHT: (2, 1, 0, 0, 1, 3), LEFT: (0, 0, 0, 0, 0, 0), OPACITY: (1, 1, 2, 3, 2, 2)},
    "p00000003": {OPACITY: (0, 2, 0, 1, 0), RIGHT: (3, 2, 2, 1, 0), HEART: (0, 0, 0, 0, 0)},
    "p00000004": {LEFT: (2, 0, 2, 0, 1), HEART: (0, 0, 1, 2, 3), OPACITY: (2, 2, 2, 2, 2)},
    "p00000005": {RIGHT: (0, 1, 0, 0, 2, 0), OPACITY: (3, 0, 0, 2, 0, 0), LEFT: (1, 2, 3, 2, 1, 0)},
    "p00000006": {LEFT: (3, 3, 0, 2, 0), RIGHT: (0, 0, 0, 3, 3), HEART: (3, 2, 2, 1, 1)},
}
"""Severity (0 absent to 3) per visit; what is not named is absent throughout. No patient is anyone."""

MAIN_ROWS = {
    "single_emergence": 5, "single_resolution": 5, "multiple_emergence_1": 3, "multiple_emergence_2": 4,
    "multiple_resolution_1": 3, "multiple_resolution_2": 4, "emergence_to_resolution": 5,
    "resolution_to_emergence": 4, "icr_multi_abn": 6, "single_entity_interval_summary": 5,
    "multi_entity_interval_summary": 5,
}  # fmt: skip
VARIANT_ROWS = 7


@dataclass(frozen=True)
class Window:
    """Five consecutive visits of one patient, from visit ``first`` (0 is the oldest)."""

    patient: str
    first: int

    def severities(self, finding: str) -> tuple[int, ...]:
        """Severity of ``finding`` at T1 to T5."""
        timeline = TIMELINES[self.patient].get(finding, (0,) * (self.first + 5))
        return timeline[self.first : self.first + 5]


def windows() -> list[Window]:
    """Every window of five visits, with a stride of one, patient by patient."""
    return [
        Window(patient, first)
        for patient, timelines in TIMELINES.items()
        for first in range(len(next(iter(timelines.values()))) - 4)
    ]


def image_path(patient: str, visit: int) -> str:
    """Path of a visit's picture, shaped as in MIMIC-CXR-JPG, below numbers that no real study has."""
    digest = hashlib.sha256(f"{patient}/{visit}".encode()).hexdigest()
    name = "-".join(["00000000", *(digest[start : start + 8] for start in range(0, 32, 8))])
    return f"files/p00/{patient}/s{int(patient[1:]):05d}{visit:03d}/{name}.jpg"


@dataclass(frozen=True)
class _Question:
    window: Window
    qtype: str
    text: str
    choices: tuple[str, ...]
    answer: str


def _change(before: int, after: int) -> str:
    if before == after:
        return "is unchanged" if before else "remains absent"
    if not before:
        return "newly appears"
    if not after:
        return "resolves"
    return "worsens" if after > before else "improves"


CHANGES = ("newly appears", "resolves", "worsens", "improves", "is unchanged", "remains absent")


def _emergences(severities: Sequence[int]) -> list[int]:
    return [i for i in range(4) if not severities[i] and severities[i + 1]]


def _resolutions(severities: Sequence[int]) -> list[int]:
    return [i for i in range(4) if severities[i] and not severities[i + 1]]


Events = Callable[[Sequence[int]], list[int]]
_EVENTS: Mapping[str, tuple[Events, str]] = {
    "emergence": (_emergences, "newly appear"),
    "resolution": (_resolutions, "resolve"),
}
_ORDINAL = {1: "first", 2: "second"}


def _located(window: Window, finding: str) -> Iterator[_Question]:
    """TEL, single and multiple: in which interval does it happen?"""
    severities = window.severities(finding)
    for kind, (find, verb) in _EVENTS.items():
        events = find(severities)
        if len(events) <= 1:
            answer = LETTERS[events[0]] if events else "E"
            null = "None of these intervals"
            text = f"In which interval does the {finding} {verb}?"
            yield _Question(window, f"single_{kind}", text, (*INTERVALS, null), answer)
        if events:
            for number in (1, 2):
                answer = LETTERS[events[number - 1]] if len(events) >= number else "E"
                null = f"There is no {_ORDINAL[number]} {kind}"
                text = f"In which interval does the {finding} {verb} for the {_ORDINAL[number]} time?"
                yield _Question(window, f"multiple_{kind}_{number}", text, (*INTERVALS, null), answer)


def _ordered(window: Window, finding: str) -> Iterator[_Question]:
    """TEL, ordered: the visits at which two events in a row are first seen."""
    severities = window.severities(finding)
    pairs = ("T2, T3", "T2, T4", "T3, T4", "T3, T5")
    for first, second in (("emergence", "resolution"), ("resolution", "emergence")):
        starts = _EVENTS[first][0](severities)
        ends = [i for i in _EVENTS[second][0](severities) if starts and i > starts[0]]
        if len(starts) > 1 or len(ends) > 1:
            continue  # more than one reading
        pair = f"T{starts[0] + 2}, T{ends[0] + 2}" if starts and ends else None
        if pair is not None and pair not in pairs:
            continue
        answer = LETTERS[pairs.index(pair)] if pair else "E"
        text = (
            f"At which visits is the {first} and then the {second} of the {finding} first seen "
            "(first event, second event)?"
        )
        yield _Question(window, f"{first}_to_{second}", text, (*pairs, "There is no such order of events"), answer)


def _statement(finding: str, interval: int, change: str) -> str:
    return f"Between T{interval + 1} and T{interval + 2}, the {finding} {change}."


def _interval_change(window: Window, null: bool, right: int, generator: np.random.Generator) -> _Question:
    """ICR: one true statement among four (or none) about different findings and intervals."""
    choices = []
    for place in range(4):
        finding = FINDINGS[(place + int(generator.integers(4))) % 4]
        interval = int(generator.integers(4))
        severities = window.severities(finding)
        truth = _change(severities[interval], severities[interval + 1])
        false = _directional([change for change in CHANGES if change != truth])
        choices.append(
            _statement(finding, interval, truth if place == right and not null else str(generator.choice(false)))
        )
    answer = "E" if null else LETTERS[right]
    text = "Which statement about a change between two consecutive visits is true?"
    return _Question(window, "icr_multi_abn", text, (*choices, "None of these statements is true"), answer)


def _directional(changes: list[str]) -> list[str]:
    """Changes with a direction; "remains absent" as a distractor would only test wording."""
    return [change for change in changes if change in CHANGES[:4]]


def _summary(finding: str, changes: Sequence[str]) -> str:
    parts = [f"{change} from T{i + 1} to T{i + 2}" for i, change in enumerate(changes)]
    return f"The {finding} {', '.join(parts[:3])}, and {parts[3]}."


def _trajectory(window: Window, finding: str) -> tuple[str, ...]:
    severities = window.severities(finding)
    return tuple(_change(severities[i], severities[i + 1]) for i in range(4))


def _flipped(changes: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    flips = {
        "newly appears": "resolves", "resolves": "newly appears", "worsens": "improves", "improves": "worsens",
        "is unchanged": "worsens", "remains absent": "newly appears",
    }  # fmt: skip
    return tuple(flips[change] if i in places else change for i, change in enumerate(changes))


def _one_course(window: Window, finding: str, null: bool, right: int) -> _Question:
    """GTS, single abnormality: its whole course, against flips of one or two intervals."""
    truth = _trajectory(window, finding)
    false = [_flipped(truth, places) for places in ((0,), (1,), (2,), (3,), (0, 2))]
    choices = [_summary(finding, false[place]) for place in range(4)]
    if not null:
        choices[right] = _summary(finding, truth)
    text = f"Which option describes the course of the {finding} over all five visits?"
    answer = "E" if null else LETTERS[right]
    return _Question(
        window, "single_entity_interval_summary", text, (*choices, "None of these describes the course"), answer
    )


def _several_courses(window: Window, null: bool, right: int) -> _Question:
    """GTS, several abnormalities: each option tells another one's course, at most one tells it rightly."""
    choices = []
    for place, finding in enumerate(FINDINGS):
        truth = _trajectory(window, finding)
        told = truth if place == right and not null else _flipped(truth, (place,))
        choices.append(_summary(finding, told))
    text = "Which option describes the course of the abnormality it names over all five visits?"
    answer = "E" if null else LETTERS[right]
    return _Question(
        window, "multi_entity_interval_summary", text, (*choices, "None of these descriptions is right"), answer
    )


def _variant(window: Window, finding: str, interval: int) -> _Question:
    severities = window.severities(finding)
    truth = _change(severities[interval], severities[interval + 1])
    choices = tuple(f"The {finding} {change}." for change in CHANGES[:4])
    answer = LETTERS[CHANGES.index(truth)] if truth in CHANGES[:4] else "E"
    text = f"What happens to the {finding} between T{interval + 1} and T{interval + 2}?"
    return _Question(window, "icr_variant_single", text, (*choices, "There is no change in this interval"), answer)


def _questions(seed: int) -> list[_Question]:
    """All main questions, by type, spread over the gold letters."""
    generator = np.random.default_rng(seed)
    pool: dict[str, list[_Question]] = {qtype: [] for qtype in MAIN_ROWS}
    for window in windows():
        for finding in TIMELINES[window.patient]:
            for question in (*_located(window, finding), *_ordered(window, finding)):
                pool[question.qtype].append(question)
    chosen: list[_Question] = []
    for qtype, number in MAIN_ROWS.items():
        if pool[qtype]:
            chosen += _spread(pool[qtype], number)
            continue
        for index in range(number):
            window = windows()[(3 * index + len(chosen)) % len(windows())]
            null, right = index % 5 == 4, (index + 1) % 4
            finding = list(TIMELINES[window.patient])[index % 3]
            if qtype == "icr_multi_abn":
                chosen.append(_interval_change(window, null, right, generator))
            elif qtype == "single_entity_interval_summary":
                chosen.append(_one_course(window, finding, null, right))
            else:
                chosen.append(_several_courses(window, null, right))
    return chosen


def _spread(candidates: list[_Question], number: int) -> list[_Question]:
    """``number`` candidates, gold letters in turn as far as there are any, later patients before repeats."""
    by_letter = {letter: [q for q in candidates if q.answer == letter] for letter in "EDBCA"}
    chosen: list[_Question] = []
    while len(chosen) < number:
        for letter in by_letter:
            if by_letter[letter] and len(chosen) < number:
                chosen.append(by_letter[letter].pop(len(by_letter[letter]) // 2))
        if not any(by_letter.values()):
            break
    return chosen


def mi_cxr_rows(seed: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Main rows and ICR-variant rows, in the release's format; every sixth row says ``qid``, as the authors' README."""
    variants: list[_Question] = []
    pairs = [(window, finding) for window in windows() for finding in TIMELINES[window.patient]]
    for index, (window, finding) in enumerate(pairs):
        if index % 4 == 0 and len(variants) < VARIANT_ROWS:
            variants.append(_variant(window, finding, index // 4 % 4))
    return _rows(_questions(seed)), _rows(variants)


def _rows(questions: Sequence[_Question]) -> list[dict[str, Any]]:
    families = {"icr_multi_abn": "ICR", "icr_variant_single": "ICR"}
    rows = []
    for number, question in enumerate(questions):
        window = question.window
        family = families.get(question.qtype, "GTS" if question.qtype.endswith("summary") else "TEL")
        rows.append(
            {
                "qid" if number % 6 == 5 else "q_id": number,
                "group_type": family,
                "qtype": question.qtype,
                "images": {f"T{i + 1}": image_path(window.patient, window.first + i) for i in range(5)},
                "question": question.text,
                "choices": dict(zip(LETTERS, question.choices, strict=True)),
                "answer": question.answer,
            }
        )
    return rows


def write_mi_cxr_source(directory: Path, seed: int = 0) -> None:
    """Write the row files and ``files/…`` in the release's layout; the same bytes for the same seed."""
    directory.mkdir(parents=True, exist_ok=True)
    for patient, timelines in TIMELINES.items():
        for visit in range(len(next(iter(timelines.values())))):
            path = directory / image_path(patient, visit)
            path.parent.mkdir(parents=True)
            severities = {finding: levels[visit] for finding, levels in timelines.items()}
            draw_radiograph(patient, visit, severities, seed).save(path, quality=90)
    for name, rows in zip(("micxr_test.jsonl", "micxr_icr_variant.jsonl"), mi_cxr_rows(seed), strict=True):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (directory / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_mi_cxr_source` wrote."""
    rows = [source / "micxr_test.jsonl", source / "micxr_icr_variant.jsonl"]
    return prepare_mi_cxr(rows, source, out, relative=True, mini=True)

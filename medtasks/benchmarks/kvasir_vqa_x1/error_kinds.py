"""Kvasir-VQA-x1: missed and invented findings, and counts that are too high or too low, from the
atomic pairs; and references that contradict the pairs (:func:`contradiction`).

Each presence or count pair behind a question asks about one class of findings. Free answers are
read by `medtasks.answers.presence`; one that says nothing clear about a class is counted as unread,
never as a denial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from medtasks.answers.presence import VERSION, Said, bare_answer, count_of, said_of
from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.kvasir_vqa_x1.records import VOCABULARY, class_of
from medtasks.catalog.benchmark import Item
from medtasks.metrics.item_metrics import ErrorRate

_LABELS = {
    name: VOCABULARY[name]
    for name in ("landmark_presence", "instrument_presence", "abnormality_presence")
}
"""Classes whose gold answers list what is present, and regular expressions of the names of what
they list.
"""

NAMES = VOCABULARY["names"]  # regular expressions of what each class is called as a whole

_ABNORMALITIES, _INSTRUMENTS = _LABELS["abnormality_presence"], _LABELS["instrument_presence"]
_WITH_LABELS = {
    "finding_presence": _ABNORMALITIES,
    "finding_count": _ABNORMALITIES,
    "instrument_count": _INSTRUMENTS,
}
"""Classes that an answer may also name by what is present."""

FINDINGS = tuple(NAMES)
_NORMAL = r"normal|unremarkable|healthy"
_IN_PART = re.compile(
    r"\b(?:surrounding|adjacent|background|remaining|rest\s+of|otherwise|elsewhere|apart\s+from|aside\s+from|except|besides"
    r"|other\s+than)\b",
    re.IGNORECASE,
)
"""What makes *normal* no statement about the whole image."""

_NOTHING = frozenset({"", "no", "none", "nothing", "not relevant", "0"})
_INVERTED = re.compile(
    r"\b(?:free\s+(?:of|from)|without|absen(?:t|ce)|lack(?:s|ing)?|no|not)\b|n['’]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reading:
    """What an answer says about one class of findings: whether it is there, which of the known
    ones, how many; ``denied`` are the known ones that it says are not there, if it names none that
    is.
    """

    said: Said
    named: frozenset[str] = frozenset()
    count: int | None = None
    denied: frozenset[str] = field(default=frozenset(), compare=False)


def read_answer(
    name: str, text: str, *, only: bool = False, further: tuple[str, ...] = ()
) -> Reading:
    """What ``text`` says about the class ``name``, one of :data:`FINDINGS`, with ``further`` names
    of findings. If the question asked ``only`` about the class, *yes*, *no* or a number is an
    answer.
    """
    whole = said_of(text, NAMES[name])
    if name.endswith("_count"):
        counted = count_of(text, NAMES[name], only=only)
        others = _WITH_LABELS.get(name, {})
        if counted is None and whole == "silent" and others:
            present = [terms for terms in others.values() if said_of(text, terms) == "present"]
            if len(present) > 1:  # a snare and a needle: neither number is that of all
                return Reading("present")
            terms = present[0] if present else "|".join(others.values())
            counted, whole = count_of(text, terms), said_of(text, terms)
        if counted is not None:
            whole = "present" if counted else "absent"
        return Reading(whole, count=counted)
    labels = {
        **_LABELS.get(name, _WITH_LABELS.get(name, {})),
        **{one: re.escape(one) for one in further},
    }
    states = {label: said_of(text, terms) for label, terms in labels.items()}
    named = frozenset(label for label, said in states.items() if said == "present")
    if named:
        return Reading("present", named)
    if whole != "present" and "unclear" in states.values():
        return Reading("unclear")
    denied = frozenset(label for label, said in states.items() if said == "absent")
    if whole == "silent" and labels and name not in ("landmark_presence", "instrument_presence"):
        normal = said_of(text, _NORMAL) == "present" and _IN_PART.search(text) is None
        whole = "absent" if normal else "silent"
    if whole == "silent" and only and not denied:
        whole = bare_answer(text)
    return Reading(whole, denied=denied)


def cases(item: Item) -> Iterator[Case]:
    """The cases of a row, one set for each different presence or count pair behind its question."""
    for view in item.samples:
        pairs = {
            (class_of(pair["q"]) or "", pair["a"].strip().rstrip("."))
            for pair in view.document["original"]
        }
        only = len(pairs) == 1 and _INVERTED.search(view.document["question"]) is None
        for name, answer in sorted(pairs):
            if name in NAMES:
                yield from _of_pair(name, answer, view.filtered, only)


def _of_pair(name: str, answer: str, text: str, only: bool) -> Iterator[Case]:
    listed = {" ".join(one.split()) for one in re.split(r"[;,]", answer.casefold())} - _NOTHING
    gold = frozenset(
        "barretts" if "barrett" in one else one for one in listed
    )  # under their known names
    there: list[Said] = []  # what the answer says about each finding that is there
    beyond: Said | None = None  # and about those that are not, unless there can be none
    if name in _LABELS:
        found = read_answer(
            name, text, only=only, further=tuple(sorted(gold - _LABELS[name].keys()))
        )
        unnamed: Said = "unclear" if found.said == "present" else found.said
        for label in gold:
            if found.named:  # to name only others denies it
                there.append("present" if label in found.named else "absent")
            else:
                there.append("absent" if label in found.denied else unnamed)
        if gold and found.named:
            beyond = "absent" if found.named <= gold else "present"
        else:
            beyond = unnamed if gold else found.said
    else:
        counted = name.endswith("_count")
        if counted and gold and not answer.isdecimal():  # `contradiction` reports it
            return
        number = int(answer) if counted and gold else 0
        found = read_answer(name, text, only=only)
        if counted:
            yield Case("exact_count_rate", found.count == number, name)
            yield Case("overcount_rate", found.count is not None and found.count > number, name)
            yield Case("undercount_rate", found.count is not None and found.count < number, name)
            yield Case("unread_count_rate", found.count is None, name)
        if number or (gold and not counted):
            there.append(found.said)
        else:
            beyond = found.said

    for said in there:
        yield Case("sensitivity", said == "present", name)
        yield Case("missed_finding_rate", said == "absent", name)
    if beyond is not None:
        yield Case("specificity", beyond == "absent", name)
        yield Case("hallucination_rate", beyond == "present", name)
    for said in (*there, *([] if beyond is None else [beyond])):
        yield Case("unread_presence_rate", said in ("unclear", "silent"), name)


_READ = {"answers": f"presence-v{VERSION}"}
_THERE, _NOT_THERE, _COUNTED = "findings-present", "findings-not-present", "count-pairs"

ERRORS = Errors(
    (
        ErrorRate("missed_finding_rate", "Missed finding", cases=_THERE, choices=_READ, harms=True),
        ErrorRate(
            "hallucination_rate", "Invented finding", cases=_NOT_THERE, choices=_READ, harms=True
        ),
        ErrorRate("undercount_rate", "Count too low", cases=_COUNTED, choices=_READ, harms=True),
        ErrorRate("overcount_rate", "Count too high", cases=_COUNTED, choices=_READ, harms=True),
        ErrorRate("sensitivity", "Sensitivity", cases=_THERE, choices=_READ, higher_is_better=True),
        ErrorRate(
            "specificity", "Specificity", cases=_NOT_THERE, choices=_READ, higher_is_better=True
        ),
        ErrorRate(
            "exact_count_rate", "Exact count", cases=_COUNTED, choices=_READ, higher_is_better=True
        ),
        ErrorRate(
            "unread_presence_rate", "Presence not stated", cases="presence-pairs", choices=_READ
        ),
        ErrorRate("unread_count_rate", "Count not stated", cases=_COUNTED, choices=_READ),
    ),
    cases,
)


def contradiction(document: Mapping[str, Any]) -> str | None:
    """How the reference answer, which a language model wrote and judges follow, contradicts an
    atomic pair it was merged from.

    >>> pair = {"q": "Is there text?", "a": "Yes"}
    >>> contradiction({"original": [pair], "target": "No text is visible in the image."})
    "'Is there text?' is answered yes, but the reference denies it"
    """
    for pair in document["original"]:
        name, answer = class_of(pair["q"]) or "", pair["a"].strip().casefold().rstrip(".")
        if name.endswith("_count") and answer.isdecimal():
            counted = count_of(document["target"], NAMES[name])
            if counted not in (None, int(answer)):
                return f"{pair['q']!r} is answered {answer}, but the reference counts {counted}"
        elif name.endswith("_count"):
            if answer not in ("none", "no"):
                return f"{pair['q']!r} is answered {answer}, which is not a number"
        elif name in NAMES and answer in ("yes", "no"):
            said = said_of(document["target"], NAMES[name])
            if said == ("absent" if answer == "yes" else "present"):
                verb = "affirms" if said == "present" else "denies"
                return f"{pair['q']!r} is answered {answer}, but the reference {verb} it"
    return None

"""Kvasir-VQA-x1: missed and invented findings, and wrong counts, from the atomic pairs.

Each presence or count pair behind a question asks about one class of findings. Free answers are
read by `medtasks.answers.presence`; one that says nothing clear about a class is counted as unread,
never as a denial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from medtasks.answers.presence import VERSION, Said, bare_answer, count_of, said_of
from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.kvasir_vqa_x1.records import VOCABULARY, class_of
from medtasks.catalog.items import Item
from medtasks.metrics.item_metrics import ErrorRate

_LABELS = {
    name: VOCABULARY[name]
    for name in ("landmark_presence", "instrument_presence", "abnormality_presence")
}
"""Classes whose gold answers list what is present: patterns of each name that they list."""

NAMES = VOCABULARY["names"]
"""Patterns of what each class is called as a whole."""

_WITH_LABELS = {
    "finding_presence": _LABELS["abnormality_presence"],
    "finding_count": _LABELS["abnormality_presence"],
    "instrument_count": _LABELS["instrument_presence"],
}
"""Classes that an answer may also name by what is present."""

FINDINGS = tuple(NAMES)
_DENIED_BY_NORMAL = NAMES.keys() - {"landmark_presence", "instrument_presence"}
"""Classes of which nothing is present if everything is called normal."""

_NORMAL = r"normal|unremarkable|healthy"
_IN_PART = re.compile(
    r"\b(?:surrounding|adjacent|background|remaining|rest\s+of|otherwise|elsewhere"
    r"|apart\s+from|aside\s+from|except|besides|other\s+than)\b",
    re.IGNORECASE,
)
"""What makes *normal* no statement about the whole image."""

_NOTHING = frozenset({"", "no", "none", "nothing", "not relevant", "0"})
_INVERTED = re.compile(
    r"\b(?:free\s+(?:of|from)|without|absen(?:t|ce)|lack(?:s|ing)?|no|not)\b|n['’]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ClassReading:
    """What an answer says about one class of findings.

    ``said`` is whether there is one, ``named`` are the known ones that the answer says are there,
    ``count`` is how many. If it names none, ``denied`` are the known ones that it says are not
    there.
    """

    said: Said
    named: frozenset[str] = frozenset()
    count: int | None = None
    denied: frozenset[str] = field(default=frozenset(), compare=False)


def read_answer(
    name: str, text: str, *, only: bool = False, further: tuple[str, ...] = ()
) -> ClassReading:
    """What ``text`` says about the class ``name``, one of :data:`FINDINGS`.

    ``further`` are names of findings besides the known ones. If the question asked ``only`` about
    the class, *yes*, *no* or a number is an answer.
    """
    if name.endswith("_count"):
        return _read_count(name, text, only=only)
    return _read_presence(name, text, only=only, further=further)


def _read_count(name: str, text: str, *, only: bool) -> ClassReading:
    """How many findings of a class there are, or that it is not said.

    A class with labels is also read by the one label that the answer names.
    """
    said = said_of(text, NAMES[name])
    count = count_of(text, NAMES[name], only=only)
    patterns = list(_WITH_LABELS.get(name, {}).values())
    if count is None and said == "silent" and patterns:
        present = [pattern for pattern in patterns if said_of(text, pattern) == "present"]
        if len(present) > 1:  # a snare and a needle: neither number is that of all
            return ClassReading("present")
        pattern = present[0] if present else "|".join(patterns)
        count = count_of(text, pattern)
        said = said_of(text, pattern)
    if count is not None:
        said = "present" if count else "absent"
    return ClassReading(said, count=count)


def _read_presence(name: str, text: str, *, only: bool, further: tuple[str, ...]) -> ClassReading:
    """Whether there are findings of a class: what is said of its labels, or of the class itself."""
    patterns = dict(_LABELS.get(name, _WITH_LABELS.get(name, {})))
    for label in further:
        patterns[label] = re.escape(label)
    labels_by_said = _labels_by_said(patterns, text)
    named = labels_by_said["present"]
    denied = labels_by_said["absent"]
    if named:
        return ClassReading("present", named)
    said = said_of(text, NAMES[name])
    if said != "present" and labels_by_said["unclear"]:
        return ClassReading("unclear")
    if said == "silent" and patterns and name in _DENIED_BY_NORMAL and _calls_all_normal(text):
        said = "absent"
    if said == "silent" and only and not denied:
        said = bare_answer(text)
    return ClassReading(said, denied=denied)


def _labels_by_said(patterns: Mapping[str, str], text: str) -> dict[Said, frozenset[str]]:
    """The labels by what the text says about each; ``patterns`` are by label."""
    labels: dict[Said, set[str]] = {"present": set(), "absent": set(), "unclear": set()}
    for label, pattern in patterns.items():
        labels.setdefault(said_of(text, pattern), set()).add(label)
    return {said: frozenset(members) for said, members in labels.items()}


def _calls_all_normal(text: str) -> bool:
    return said_of(text, _NORMAL) == "present" and _IN_PART.search(text) is None


def cases(item: Item) -> Iterator[Case]:
    """The cases of a row, one set for each different presence or count pair behind its question."""
    for sample in item.samples:
        pairs: set[tuple[str, str]] = set()
        for pair in sample.document["original"]:
            pairs.add((class_of(pair["q"]) or "", pair["a"].strip().rstrip(".")))
        only = len(pairs) == 1 and _INVERTED.search(sample.document["question"]) is None
        for name, gold_answer in sorted(pairs):
            if name in NAMES:
                yield from _cases_of_pair(name, gold_answer, sample.filtered, only=only)


@dataclass(frozen=True)
class _Statements:
    """What an answer says about a class of findings, as the gold answer divides it.

    ``there`` is what it says about each finding that is there, ``beyond`` about those that are not;
    None if the gold answer leaves none.
    """

    there: tuple[Said, ...] = ()
    beyond: Said | None = None

    @classmethod
    def of_class(cls, said: Said, *, present: bool) -> _Statements:
        """A statement on the class as a whole, of which a finding is ``present`` or not."""
        return cls(there=(said,)) if present else cls(beyond=said)


def _cases_of_pair(name: str, gold_answer: str, text: str, *, only: bool) -> Iterator[Case]:
    """The cases of one atomic pair; ``text`` is the answer to the question made from it."""
    gold = _gold_labels(gold_answer)
    if name in _LABELS:
        statements = _statements_on_labels(name, gold, text, only=only)
    elif name.endswith("_count"):
        if gold and not gold_answer.isdecimal():  # `contradiction` reports it
            return
        number = int(gold_answer) if gold else 0
        reading = read_answer(name, text, only=only)
        yield from _count_cases(name, reading.count, number)
        statements = _Statements.of_class(reading.said, present=number > 0)
    else:
        reading = read_answer(name, text, only=only)
        statements = _Statements.of_class(reading.said, present=bool(gold))
    yield from _presence_cases(name, statements)


def _gold_labels(gold_answer: str) -> frozenset[str]:
    """The findings that a gold answer lists, under their known names."""
    labels = set()
    for part in re.split(r"[;,]", gold_answer.casefold()):
        label = " ".join(part.split())
        if label not in _NOTHING:
            labels.add("barretts" if "barrett" in label else label)
    return frozenset(labels)


def _statements_on_labels(name: str, gold: frozenset[str], text: str, *, only: bool) -> _Statements:
    """What an answer says about each finding that the gold answer lists, and about any other."""
    unknown_labels = tuple(sorted(gold - _LABELS[name].keys()))
    reading = read_answer(name, text, only=only, further=unknown_labels)
    if not gold:
        return _Statements(beyond=reading.said)
    there = tuple(_said_of_label(label, reading) for label in gold)
    if not reading.named:
        return _Statements(there, beyond=_said_of_unnamed(reading))
    return _Statements(there, beyond="absent" if reading.named <= gold else "present")


def _said_of_label(label: str, reading: ClassReading) -> Said:
    """What an answer says about one finding; to name only others denies it."""
    if reading.named:
        return "present" if label in reading.named else "absent"
    if label in reading.denied:
        return "absent"
    return _said_of_unnamed(reading)


def _said_of_unnamed(reading: ClassReading) -> Said:
    """What an answer says about a finding that it does not name."""
    return "unclear" if reading.said == "present" else reading.said


def _count_cases(name: str, count: int | None, gold: int) -> Iterator[Case]:
    yield Case("exact_count_rate", count == gold, name)
    yield Case("overcount_rate", count is not None and count > gold, name)
    yield Case("undercount_rate", count is not None and count < gold, name)
    yield Case("unread_count_rate", count is None, name)


def _presence_cases(name: str, statements: _Statements) -> Iterator[Case]:
    """The cases of statements on a class: on findings that are there, and on those that are not."""
    every = list(statements.there)
    for said in statements.there:
        yield Case("sensitivity", said == "present", name)
        yield Case("missed_finding_rate", said == "absent", name)
    if statements.beyond is not None:
        every.append(statements.beyond)
        yield Case("specificity", statements.beyond == "absent", name)
        yield Case("hallucination_rate", statements.beyond == "present", name)
    for said in every:
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

"""Kvasir-VQA-x1: reference answers that contradict the atomic pairs they were merged from, as far as rules can tell.

The references were written by a language model, and the judge follows the reference, so an answer to such a row is
scored against the row's own annotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from medtasks.benchmarks.kvasir_vqa_x1.vocabulary import class_of

_SUBJECTS: Mapping[str, str] = {
    "text_presence": r"(?:text|lettering|writing|annotations?)",
    "box_artifact_presence": r"(?:box(?:es)?|artifacts?|artefacts?)",
    "finding_presence": r"(?:findings?)",
}
"""What a yes-or-no question asks about."""
_COUNTED: Mapping[str, str] = {
    "polyp_count": r"polyps?",
    "finding_count": r"findings?",
    "instrument_count": r"(?:instruments?|tools?)",
}
_CLAUSES = re.compile(r"[.;,]|\b(?:and|but|while|whereas|although|with)\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:no|not|none|without|absent|absence|neither|nor|free of|lacks?|lacking|n't)\b", re.IGNORECASE
)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS: Mapping[str, int] = {**{word: number for number, word in enumerate(_WORDS)}, "no": 0, "a": 1, "single": 1}


def contradiction(document: Mapping[str, Any]) -> str | None:
    """How the reference answer contradicts an atomic pair; None if no rule finds a contradiction.

    Looks at yes-or-no pairs (text, box artefact, findings) and at counts (polyps, findings, instruments), which must be
    numbers.

    >>> pair = {"q": "Is there text?", "a": "Yes"}
    >>> contradiction({"original": [pair], "target": "No text is visible in the image."})
    "'Is there text?' is answered yes, but the reference denies it"
    """
    for pair in document["original"]:
        name, answer = class_of(pair["q"]) or "", pair["a"].strip().casefold().rstrip(".")
        clauses = _CLAUSES.split(document["target"])
        if name in _SUBJECTS and answer in ("yes", "no"):
            affirmed = _affirmed(clauses, _SUBJECTS[name])
            if affirmed is not None and affirmed != (answer == "yes"):
                verb = "affirms" if affirmed else "denies"
                return f"{pair['q']!r} is answered {answer}, but the reference {verb} it"
        elif name in _COUNTED and not answer.isdecimal():
            if answer not in ("none", "no"):
                return f"{pair['q']!r} is answered {answer}, which is not a number"
        elif name in _COUNTED:
            counts = _counts(clauses, _COUNTED[name])
            if counts and int(answer) not in counts:
                return f"{pair['q']!r} is answered {answer}, but the reference counts {min(counts)}"
    return None


def _affirmed(clauses: list[str], subject: str) -> bool | None:
    """Whether the clauses about the subject affirm it; None if there are none, or they disagree."""
    about = [clause for clause in clauses if re.search(rf"\b{subject}\b", clause, re.IGNORECASE)]
    affirmed = {_DENIED.search(clause) is None for clause in about}
    return affirmed.pop() if len(affirmed) == 1 else None


def _counts(clauses: list[str], noun: str) -> set[int]:
    """The numbers before the noun, with at most two words between."""
    words = "|".join(_NUMBERS)
    pattern = re.compile(rf"\b(?P<number>\d+|{words})\s+(?:[a-z-]+\s+){{0,2}}{noun}\b", re.IGNORECASE)
    found = (match["number"].casefold() for clause in clauses for match in pattern.finditer(clause))
    return {int(word) if word.isdecimal() else _NUMBERS[word] for word in found}

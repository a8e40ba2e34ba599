"""Kvasir-VQA-x1: reference answers that contradict the atomic pairs they were merged from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtasks.answers.presence import count_of, said_of
from medtasks.benchmarks.kvasir_vqa_x1.error_kinds import NAMES
from medtasks.benchmarks.kvasir_vqa_x1.records import class_of


def contradiction(document: Mapping[str, Any]) -> str | None:
    """How the reference answer contradicts an atomic pair it was merged from; None if it does not.

    A language model wrote the reference answer, and judges follow it.

    >>> pair = {"q": "Is there text?", "a": "Yes"}
    >>> contradiction({"original": [pair], "target": "No text is visible in the image."})
    "'Is there text?' is answered yes, but the reference denies it"
    """
    for pair in document["original"]:
        name = class_of(pair["q"]) or ""
        answer = pair["a"].strip().casefold().rstrip(".")
        if name.endswith("_count"):
            how = _count_contradiction(name, answer, document["target"])
        else:
            how = _presence_contradiction(name, answer, document["target"])
        if how:
            return f"{pair['q']!r} is answered {answer}, {how}"
    return None


def _count_contradiction(name: str, answer: str, reference: str) -> str:
    """How a reference contradicts the answer to a count question; empty if it does not."""
    if answer.isdecimal():
        count = count_of(reference, NAMES[name])
        if count is not None and count != int(answer):
            return f"but the reference counts {count}"
    elif answer not in ("none", "no"):
        return "which is not a number"
    return ""


def _presence_contradiction(name: str, answer: str, reference: str) -> str:
    """How a reference contradicts the answer to a presence question; empty if it does not."""
    if name not in NAMES or answer not in ("yes", "no"):
        return ""
    said = said_of(reference, NAMES[name])
    if answer == "yes" and said == "absent":
        return "but the reference denies it"
    if answer == "no" and said == "present":
        return "but the reference affirms it"
    return ""

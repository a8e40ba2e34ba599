"""Kvasir-VQA-x1: reference answers that contradict the atomic pairs they were merged from, as far as rules can tell.

The references were written by a language model, and the judge follows the reference, so an answer to such a row is
scored against the row's own annotation. References are read like answers (`medtasks.filters.presence`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtasks.benchmarks.kvasir_vqa_x1.errors import NAMES
from medtasks.benchmarks.kvasir_vqa_x1.vocabulary import class_of
from medtasks.filters.presence import count_of, said_of


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

"""Panels of judges: the scores they decide, which aspects stay open, and why; and judges of the model's own family.

arXiv 2506.09958 (section 4.2.5) asks for an ensemble of different judges. An aspect without a decision is open,
never guessed: `bounds` gives the remaining range.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Literal, NamedTuple

from medtasks.catalog.rubric import aspects_of, total
from medtasks.catalog.scales import Aspect, Rubric
from medtasks.core.errors import MedtasksError

Rule = Literal["majority", "mean"]


class Combined(NamedTuple):
    """The decided scores, and for every other aspect the reason why it is open."""

    scores: dict[str, float]
    open: dict[str, str]


def combine(verdicts: Mapping[str, Mapping[str, int] | None], aspects: Sequence[Aspect], rule: Rule) -> Combined:
    """The decisions of a panel, aspect by aspect; the order of judges does not matter.

    ``majority``: the score that more than half of the whole panel gave, those without a verdict included. ``mean``: the
    mean score, if all have a verdict. ``verdicts`` are the scores of each judge by name, or None if it has no verdict.

    Raises:
        MedtasksError: a judge's scores are not one score of the scale for each aspect.
    """
    for judge, given in verdicts.items():
        if given is None:
            continue
        if given.keys() != {one.name for one in aspects} or any(given[one.name] not in one.scale for one in aspects):
            raise MedtasksError(
                f"judge {judge} gave {dict(given)}, expected one score for each of {[one.name for one in aspects]}; "
                "combine verdicts on the same response under the same rubric."
            )
    combined = Combined({}, {})
    for aspect in aspects:
        votes = {judge: given[aspect.name] for judge, given in sorted(verdicts.items()) if given is not None}
        missing = sorted(verdicts.keys() - votes.keys())
        ranked = Counter(votes.values()).most_common()
        most = ranked[0][1] if ranked else 0
        if rule == "mean" and not missing:
            combined.scores[aspect.name] = fsum(votes.values()) / len(votes)
            continue
        if rule == "majority" and 2 * most > len(verdicts):
            combined.scores[aspect.name] = float(ranked[0][0])
            continue
        absent = f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no verdict"
        present = ", ".join(f"{judge} gave {score}" for judge, score in votes.items())
        if rule == "mean" or not votes:
            reason = absent
        elif 2 * (most + len(missing)) > len(verdicts):  # a missing judge could have decided
            reason = f"{absent}; {present}"
        else:
            tied = len(ranked) > 1 and ranked[1][1] == most
            reason = f"{'tie' if tied else 'no majority'}: {present}" + (f"; {absent}" if missing else "")
        combined.open[aspect.name] = reason
    return combined


def bounds(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """The lowest and the highest totals possible: aspects missing from ``scores`` at their minimum, and at their
    maximum.

    These are bounds because weights are not negative and a higher score never lowers a cap. Raises as
    `medtasks.catalog.rubric.total`.
    """
    aspects = aspects_of(rubric, document)
    low = total(rubric, document, {**{one.name: float(one.minimum) for one in aspects}, **scores})
    high = total(rubric, document, {**{one.name: float(one.maximum) for one in aspects}, **scores})
    return low, high


_FAMILIES = {
    "claude": "claude",
    "cohere": r"command-[ar]\b|\baya-",
    "deepseek": "deepseek",
    "glm": "glm",
    "google": "gemini|gemma",
    "grok": "grok",
    "internvl": "internvl|internlm",
    "kimi": "kimi",
    "llama": "(?<!o)llama(?!-?factory)|vicuna",
    "llava": "llava",
    "minicpm": "minicpm",
    "mistral": "mi[sx]tral|pixtral|magistral",
    "openai": r"\b(chat)?gpt-?(oss|[345])|(^|/)o[134]\b",
    "phi": r"\bphi-?[1-4]",
    "qwen": "qwen|qwq|lingshu|hulu-?med",
}


def family_of(name: str) -> tuple[str, ...]:
    """The families that a model's name or path mentions, sorted: a distilled model has two."""
    return tuple(family for family, pattern in _FAMILIES.items() if re.search(pattern, name, re.IGNORECASE))


def same_family(judge: str, judged: str) -> str | None:
    """A warning in one sentence if the judge is the judged model or of its family."""
    if judge.strip().casefold() != judged.strip().casefold() and not {*family_of(judge)} & {*family_of(judged)}:
        return None
    return (
        f"judge {judge[-80:]!a} and model {judged[-80:]!a} are of the same family: judges tend to favour answers of "
        "their own kind (homogeneity bias: the Kvasir-VQA-x1 paper asks for judges of another architecture); use a "
        "judge from another family, or several judges."
    )

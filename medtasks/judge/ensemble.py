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

    ``majority``: the score that more than half of the whole panel gave. A judge without a verdict counts as a member,
    so two of three who agree decide without the third. ``mean``: the mean score, if all have a verdict.

    Args:
        verdicts: the scores of each judge of the panel by name, or None if it has no verdict.
        aspects: what is judged.
        rule: how the panel decides.

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
    scores: dict[str, float] = {}
    undecided: dict[str, str] = {}
    for aspect in aspects:
        votes = {judge: given[aspect.name] for judge, given in verdicts.items() if given is not None}
        missing = sorted(verdicts.keys() - votes.keys())
        found = _majority(votes, missing) if rule == "majority" else _mean(votes, missing)
        if isinstance(found, str):
            undecided[aspect.name] = found
        else:
            scores[aspect.name] = found
    return Combined(scores, undecided)


def _majority(votes: Mapping[str, int], missing: Sequence[str]) -> float | str:
    """The score that more than half of the panel gave, or why there is none."""
    panel = len(votes) + len(missing)
    ranked = Counter(votes.values()).most_common()
    if not ranked:
        return _without(missing)
    score, most = ranked[0]
    if 2 * most > panel:
        return float(score)
    if 2 * (most + len(missing)) > panel:  # a missing judge could have decided
        return f"{_without(missing)}; {_given(votes)}"
    tied = len(ranked) > 1 and ranked[1][1] == most
    absent = f"; {_without(missing)}" if missing else ""
    return f"{'tie' if tied else 'no majority'}: {_given(votes)}{absent}"


def _mean(votes: Mapping[str, int], missing: Sequence[str]) -> float | str:
    return _without(missing) if missing else fsum(votes.values()) / len(votes)


def _given(votes: Mapping[str, int]) -> str:
    return ", ".join(f"{judge} gave {score}" for judge, score in sorted(votes.items()))


def _without(missing: Sequence[str]) -> str:
    return f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no verdict"


def bounds(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """The lowest and the highest totals possible with the aspects that are missing from ``scores``.

    Both have the keys of `medtasks.catalog.rubric.total`: every missing aspect at its minimum, and at its maximum.
    These are bounds because weights are not negative and a higher score never lowers a cap.

    Raises:
        DataError: as `medtasks.catalog.rubric.aspects_of`.
        MedtasksError: a score is not of an aspect, or not within its scale.
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
    """A warning in one sentence if the judge is the judged model or of its family, else None."""
    if judge.strip().casefold() != judged.strip().casefold() and not {*family_of(judge)} & {*family_of(judged)}:
        return None
    return (
        f"judge {judge[-80:]!a} and model {judged[-80:]!a} are of the same family: judges tend to favour answers of "
        "their own kind (homogeneity bias: the Kvasir-VQA-x1 paper asks for judges of another architecture); use a "
        "judge from another family, or several judges."
    )

"""What a panel of judges decided, and the limits of a score that is not decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Aspect, Rubric
from medtasks.catalog.rubric_totals import total
from medtasks.core.errors import MedtasksError
from medtasks.runs.verdict import Rule


def combine(
    verdicts: Mapping[str, Mapping[str, int] | None], aspects: Sequence[Aspect], rule: Rule
) -> tuple[dict[str, float], dict[str, str]]:
    """The scores that a panel decided, and why every other aspect is open.

    The order of judges does not matter.

    Args:
        verdicts: the scores of each judge by name, or None if it has no verdict.
        aspects: the aspects that every verdict scores.
        rule: ``majority``: the score that more than half of the whole panel gave, those without a
            verdict included. ``mean``: the mean score, if all have a verdict.

    Raises:
        MedtasksError: a verdict does not have one score on the scale for each aspect.
    """
    _require_scores(verdicts, aspects)
    decided: dict[str, float] = {}
    undecided: dict[str, str] = {}
    for aspect in aspects:
        votes: dict[str, int] = {}
        missing: list[str] = []
        for judge, scores in sorted(verdicts.items()):
            if scores is None:
                missing.append(judge)
            else:
                votes[judge] = scores[aspect.name]
        score = _decision(votes, len(verdicts), rule)
        if score is None:
            undecided[aspect.name] = _why_undecided(votes, missing, rule)
        else:
            decided[aspect.name] = score
    return decided, undecided


def _require_scores(
    verdicts: Mapping[str, Mapping[str, int] | None], aspects: Sequence[Aspect]
) -> None:
    """Refuse a verdict without exactly one score on the scale for each aspect."""
    names = [aspect.name for aspect in aspects]
    for judge, scores in verdicts.items():
        if scores is None:
            continue
        is_complete = scores.keys() == set(names)
        if not is_complete or any(scores[aspect.name] not in aspect.scale for aspect in aspects):
            raise MedtasksError(
                f"judge {judge} gave {dict(scores)}, expected one score for each of {names}; "
                "combine verdicts on the same response under the same rubric."
            )


def _decision(votes: Mapping[str, int], panel: int, rule: Rule) -> float | None:
    """The score that ``votes`` of a panel with so many judges decide; None if it is undecided."""
    if not votes:
        return None
    if rule == "mean":
        if len(votes) < panel:
            return None
        return fsum(votes.values()) / len(votes)
    score, count = Counter(votes.values()).most_common(1)[0]
    return float(score) if 2 * count > panel else None


def _why_undecided(votes: Mapping[str, int], missing: Sequence[str], rule: Rule) -> str:
    """Why an aspect is undecided: judges without a verdict if they could have decided it, else a
    tie or the lack of a majority.
    """
    verb = "has" if len(missing) == 1 else "have"
    absent = f"{', '.join(missing)} {verb} no verdict"
    if rule == "mean" or not votes:
        return absent
    present = ", ".join(f"{judge} gave {score}" for judge, score in votes.items())
    counts = Counter(votes.values()).most_common()
    most_votes = counts[0][1]
    could_be_decided = 2 * (most_votes + len(missing)) > len(votes) + len(missing)
    if could_be_decided:
        return f"{absent}; {present}"
    is_tie = len(counts) > 1 and counts[1][1] == most_votes
    cause = "tie" if is_tie else "no majority"
    if missing:
        return f"{cause}: {present}; {absent}"
    return f"{cause}: {present}"


def bounds(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """The lowest and the highest totals possible once the ``scores`` of some aspects are decided.

    No weight is negative, and a higher score never lowers a cap.
    """
    lowest: dict[str, float] = {}
    highest: dict[str, float] = {}
    for aspect in aspects_of(rubric, document):
        lowest[aspect.name] = float(aspect.minimum)
        highest[aspect.name] = float(aspect.maximum)
    low = total(rubric, document, lowest | {**scores})
    high = total(rubric, document, highest | {**scores})
    return low, high

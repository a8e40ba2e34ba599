"""What a panel of judges decided, and the limits of a score that is not decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from medtasks.catalog.rubric import Aspect, Rubric, aspects_of, total
from medtasks.core.errors import MedtasksError
from medtasks.runs.verdict import Rule


def combine(
    verdicts: Mapping[str, Mapping[str, int] | None], aspects: Sequence[Aspect], rule: Rule
) -> tuple[dict[str, float], dict[str, str]]:
    """The scores that a panel decided, and why every other aspect is open; the order of judges does
    not matter.

    ``majority``: the score that more than half of the whole panel gave, those without a verdict
    included. ``mean``: the mean score, if all have a verdict. ``verdicts`` are the scores of each
    judge by name, or None if it has no verdict.
    """
    names = [aspect.name for aspect in aspects]
    for judge, given in verdicts.items():
        if given is not None and (
            given.keys() != {*names}
            or any(given[aspect.name] not in aspect.scale for aspect in aspects)
        ):
            raise MedtasksError(
                f"judge {judge} gave {dict(given)}, expected one score for each of {names}; combine verdicts on the "
                "same response under the same rubric."
            )
    decided: dict[str, float] = {}
    undecided: dict[str, str] = {}
    for name in names:
        votes = {
            judge: given[name] for judge, given in sorted(verdicts.items()) if given is not None
        }
        missing = sorted(verdicts.keys() - votes.keys())
        ranked = Counter(votes.values()).most_common()
        most = ranked[0][1] if ranked else 0
        absent = f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no verdict"
        present = ", ".join(f"{judge} gave {score}" for judge, score in votes.items())
        if rule == "mean" and not missing:
            decided[name] = fsum(votes.values()) / len(votes)
        elif rule == "majority" and 2 * most > len(verdicts):
            decided[name] = float(ranked[0][0])
        elif rule == "mean" or not votes:
            undecided[name] = absent
        elif 2 * (most + len(missing)) > len(verdicts):  # a missing judge could have decided
            undecided[name] = f"{absent}; {present}"
        else:
            tied = len(ranked) > 1 and ranked[1][1] == most
            undecided[name] = f"{'tie' if tied else 'no majority'}: {present}" + (
                f"; {absent}" if missing else ""
            )
    return decided, undecided


def bounds(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """The lowest and the highest totals possible; no weight is negative, and a higher score never
    lowers a cap.
    """
    aspects = aspects_of(rubric, document)
    low = total(rubric, document, {**{one.name: float(one.minimum) for one in aspects}, **scores})
    high = total(rubric, document, {**{one.name: float(one.maximum) for one in aspects}, **scores})
    return low, high

"""Diagnostics of scores: answers that were not extracted, letters, abstention."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field

from medtasks.catalog.statuses import ANSWERED, FAILED
from medtasks.scoring.scores import Letters, Scores


class Diagnostics(BaseModel, frozen=True):
    """Diagnostics of one task or group; an optional share is None if its denominator is 0.

    ``extraction_failures`` is the share of responses without an answer to score, ``read_by_text``
    the share of selected options that were named by their text instead of their letter,
    ``named_in_prose`` the share of questions without a selected option whose response contains the
    text of just one. ``letter_bias`` is half the sum over the options of |share among chosen
    letters - share among correct letters| (0: equally often, 1: disjoint). ``false_abstention`` is
    the share of questions answered with the null option among those where it is wrong,
    ``false_commitment`` the share answered with another option among those where it is correct
    (arXiv 2605.15574).
    """

    responses: int
    extraction_failures: float
    read_by_text: float | None = Field(default=None, exclude_if=lambda value: value is None)
    named_in_prose: float | None = Field(default=None, exclude_if=lambda value: value is None)
    letter_bias: float | None = None
    false_abstention: float | None = None
    false_commitment: float | None = None


def diagnose(scores: Scores, null_option: str | None, readings: Mapping[str, int]) -> Diagnostics:
    """Diagnostics from the scores of a task or group.

    ``readings`` counts how often options were named in which way.
    """
    responses = unread = 0
    for status, count in scores.status.items():
        if status != FAILED:
            responses += count
            if status not in ANSWERED:
                unread += count
    diagnostics = Diagnostics(
        responses=responses, extraction_failures=unread / responses if responses else 0.0
    )
    if scores.letters is None:
        return diagnostics
    update = _shares_of_readings(scores, readings) | _letter_bias(scores.letters)
    if null_option is not None:
        update |= _abstention(scores.letters, null_option)
    return diagnostics.model_copy(update=update)


def _shares_of_readings(scores: Scores, readings: Mapping[str, int]) -> dict[str, float | None]:
    """How selected options were named, and questions without one."""
    shares: dict[str, float | None] = {}
    by_letter = readings.get("letter", 0)
    by_text = readings.get("text", 0)
    if by_letter or by_text:
        shares["read_by_text"] = by_text / (by_letter + by_text)
    not_selected = scores.samples - by_letter - by_text - scores.status.get(FAILED, 0)
    if not_selected:
        shares["named_in_prose"] = readings.get("named", 0) / not_selected
    return shares


def _letter_bias(letters: Letters) -> dict[str, float | None]:
    """Half the sum of the differences in share; empty if no option was chosen."""
    gold = sum(letters.gold.values())
    chosen = sum(letters.chosen[letter] for letter in letters.gold)
    if not chosen:
        return {}
    differences = []
    for letter in letters.gold:
        share_chosen = letters.chosen[letter] / chosen
        differences.append(abs(share_chosen - letters.gold[letter] / gold))
    return {"letter_bias": sum(differences) / 2}


def _abstention(letters: Letters, null_option: str) -> dict[str, float | None]:
    """False abstention and commitment; empty if they were not counted."""
    false_abstentions = letters.null_chosen_when_wrong
    false_commitments = letters.null_missed_when_right
    if false_abstentions is None or false_commitments is None:
        return {}
    right = letters.gold[null_option]
    wrong = sum(letters.gold.values()) - right
    return {
        "false_abstention": false_abstentions / wrong if wrong else None,
        "false_commitment": false_commitments / right if right else None,
    }

"""MedStreamBench: the responses that prompts allow, and those that baselines give."""

from __future__ import annotations

from typing import NamedTuple

from medtasks.benchmarks.medstreambench.records import ABSTENTIONS, MedStreamRecord


class AllowedResponses(NamedTuple):
    """How an item may be answered: what prompts allow, and what baselines answer."""

    allowed: list[str]
    abstention: str
    positive: str
    guesses: list[str]


def allowed_responses(record: MedStreamRecord) -> AllowedResponses:
    """How the item may be answered: by alerts if it is proactive, otherwise by answers."""
    answer = _first_answer(record)
    if record.temporal_mode == "proactive":
        abstentions = ABSTENTIONS["proactive"]
        positive = as_alert(answer or "something changed")
        allowed = [*abstentions, "alert: <reason>"]
        return AllowedResponses(allowed, abstentions[0], positive, [*abstentions, positive])
    abstentions = ABSTENTIONS["future"]
    allowed = [*abstentions, "<answer>"]
    guesses = list(record.choices)
    if record.choices and record.task_mode == "streaming":
        guesses.extend(abstentions)
    return AllowedResponses(allowed, abstentions[0], answer or "yes", guesses)


def _first_answer(record: MedStreamRecord) -> str:
    """What the first answerable round expects; empty if there is none."""
    for turn in record.rounds:
        if turn.answerable:
            return "; ".join(turn.expected)
    return ""


def as_alert(reason: str) -> str:
    """The alert with this reason; an alert stays as it is."""
    return reason if reason.casefold().startswith("alert") else f"alert: {reason}"

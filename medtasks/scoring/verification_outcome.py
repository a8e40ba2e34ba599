"""What came of verifying a task of a run, as pages and notes state it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verification:
    """The outcome for one task of a run.

    ``verified``: scored from the responses, with the data prepared here. ``unverifiable``: the data
    are not here, so questions and gold answers are taken as submitted, or the scores themselves
    (``claimed``; ``stripped`` if that is because prompts and responses were removed). ``refused``:
    never ranked, because of samples of no document of the task (``strangers``) or with another
    prompt (``other_prompts``, both by id). ``prompts`` is whether prompts were compared with the
    template, ``submitted`` are the metrics whose values are taken as submitted.
    """

    outcome: Literal["verified", "unverifiable", "refused"] = "verified"
    reason: str = ""
    claimed: bool = False
    stripped: bool = False
    strangers: tuple[str, ...] = ()
    other_prompts: tuple[str, ...] = ()
    prompts: bool = True
    submitted: tuple[str, ...] = ()

    def doubts(self, sample_id: str) -> str:
        """What pages show of a sample that could not be verified here, and why; empty if all of it
        was.
        """
        doubts = []
        if self.outcome == "unverifiable" and not self.claimed:
            doubts.append(
                "question and reference are as submitted, because the run's data are not prepared "
                "here"
            )
        elif sample_id in self.strangers:
            doubts.append(
                "question and reference are as submitted, because the data have no such sample"
            )
        if sample_id in self.other_prompts:
            doubts.append("the prompt is as submitted and differs from the task's template")
        elif not self.prompts:
            doubts.append("the prompt is as submitted, because it is not the template's alone")
        if self.claimed:
            doubts.append("scores are as submitted, because they cannot be computed here")
        elif self.submitted:
            doubts.append(
                f"{', '.join(self.submitted)}: as submitted, because it is not computed here"
            )
        return "; ".join(doubts)


VERIFIED = Verification()


def unverified_note(tasks: Sequence[str]) -> str:
    """The note that the documents of these tasks were not verified."""
    return (
        f"Documents not verified: {', '.join(tasks)} (the data are not prepared where the board "
        "was built, so questions and gold answers are taken as submitted)."
    )


def verification_notes(outcomes: Mapping[str, Verification]) -> Iterator[str]:
    """The outcomes as notes on a run."""
    unverified: list[str] = []
    stripped: list[str] = []
    for task, verification in sorted(outcomes.items()):
        if verification.outcome == "refused":
            yield f"{task}: {verification.reason}"
        if verification.outcome == "unverifiable" and not verification.claimed:
            unverified.append(task)
        if verification.stripped:
            stripped.append(task)
    if unverified:
        yield unverified_note(unverified)
    if stripped:
        yield f"stripped, so the responses cannot be scored again: {', '.join(stripped)}"

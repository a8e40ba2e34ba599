"""BLEU, ROUGE-1/2/L and METEOR as Medico and MEDVQA-GI publish them, with our intervals.

The organisers' scripts compute them with ``evaluate``. Medtasks has the same BLEU and METEOR. Of
ROUGE, ``evaluate`` returns the median of 1,000 random resamples, which differs a little in each
run; here it is the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import medtasks
from medtasks.api import DataError

from medtasks_challenges.run_answers import ChallengeAnswer

METRICS = ("bleu", "rouge1", "rouge2", "rougeL", "meteor")


UNSPLIT = "split:none"
"""The part of METEOR's signature that says that texts are not split into sentences."""


@dataclass(frozen=True)
class PublicScore:
    """One score.

    Args:
        value: the score (0..1); None if it is not computed.
        low, high: the ends of its 95 % confidence interval; None if it has none.
        reason: why it is not computed; empty if it is.
        signature: everything that can change it.
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str
    signature: str


def public_scores(
    task: str, answers: Sequence[ChallengeAnswer], model: str
) -> dict[str, PublicScore]:
    """The public scores of answers to all documents of a task, by metric.

    An answer with a problem is scored as an empty text.

    Raises:
        DataError: rows were left out when the data were prepared, so that the order is another one;
            or the task's filter would change an answer.
    """
    rows = [{"sample_id": answer.sample_id, "response": answer.answer} for answer in answers]
    run = medtasks.score(rows, task, model=model)
    refuse_excluded(run)
    _refuse_changed(run, task, answers)
    scores: dict[str, PublicScore] = {}
    for row in run.scores().arrow.to_pylist():
        if row["task"] == task and row["breakdown"] is None:
            scores[row["metric"]] = PublicScore(
                row["value"], row["low"], row["high"], row["reason"] or "", row["signature"]
            )
    return {metric: scores[metric] for metric in METRICS}


def refuse_excluded(run: medtasks.Run) -> None:
    """Raise an error if rows were left out of the prepared data.

    Raises:
        DataError: some were, so the order of the challenge's rows is not known.
    """
    for benchmark, facts in run.manifest.data.items():
        left_out = sum(facts.excluded.values())
        if left_out:
            raise DataError(
                f"{benchmark}: {left_out:,} rows were left out when the data were prepared, so the "
                "challenge's rows cannot be selected; prepare the whole split."
            )


def _refuse_changed(run: medtasks.Run, task: str, answers: Sequence[ChallengeAnswer]) -> None:
    """Raise an error if the scored texts are not the answers."""
    scored = {row["sample_id"]: row for row in run.samples(task).arrow.to_pylist()}
    for answer in answers:
        row = scored[answer.sample_id]
        if row["status"] == "ok" and row["filtered"] != answer.answer:
            raise DataError(
                f"sample {answer.sample_id}: the answer {answer.answer[:80]!r} would be scored as "
                f"{row['filtered'][:80]!r}; write it as plain text."
            )


def rounded(scores: Mapping[str, PublicScore], digits: int) -> dict[str, float | None]:
    """The values, rounded as in the challenge's file; None for what is not computed."""
    values: dict[str, float | None] = {}
    for metric, score in scores.items():
        values[metric] = None if score.value is None else round(score.value, digits)
    return values


def score_lines(scores: Mapping[str, PublicScore], digits: int) -> list[str]:
    """A line for each score with its interval, or why there is none, then what differs from the
    organisers' scores.
    """
    lines = [_score_line(metric, score, digits) for metric, score in scores.items()]
    lines.append("rouge: means; evaluate's medians of random resamples differ in the last digits")
    meteor = scores["meteor"]
    if meteor.value is not None and UNSPLIT in meteor.signature.split("|"):
        lines.append(
            "meteor: texts are not split into sentences, as evaluate splits them, because NLTK's "
            "punkt_tab is not installed; `medtasks fetch punkt` gets it"
        )
    return lines


def _score_line(metric: str, score: PublicScore, digits: int) -> str:
    """One score with its interval, or the reason why it is not computed."""
    if score.value is None:
        return f"{metric}: null, because it is not computed: {score.reason}"
    if score.low is None or score.high is None:
        return f"{metric} {score.value:.{digits}f}"
    return f"{metric} {score.value:.{digits}f} [{score.low:.{digits}f}, {score.high:.{digits}f}]"

"""The command that scores a challenge's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from medtasks.api import UsageError

from medtasks_challenges import medreason_scores, predictions_file, public_scores
from medtasks_challenges.predictions_file import GI_1, MEDICO_1, PredictionsChallenge


def score(
    challenge: Annotated[str, typer.Argument(help="medico-2026-1, gi-2026-1 or medreason.")],
    file: Annotated[Path, typer.Argument(help="The challenge's file.")],
    ground_truth: Annotated[
        Path | None,
        typer.Option("--ground-truth", help="MedReason: ground_truth.json."),
    ] = None,
    judge_scores: Annotated[
        Path | None,
        typer.Option("--judge-scores", help="MedReason: the organisers' scores of open cases."),
    ] = None,
) -> None:
    """Print the public scores of a challenge's file."""
    by_name = {MEDICO_1.name: MEDICO_1, GI_1.name: GI_1}
    if challenge in by_name:
        if ground_truth is not None or judge_scores is not None:
            raise UsageError(
                f"{challenge} has its references in the prepared data, and no judges; leave out "
                "--ground-truth and --judge-scores."
            )
        _print_overlap_scores(by_name[challenge], file)
    elif challenge == "medreason":
        _print_medreason_scores(file, ground_truth, judge_scores)
    else:
        raise UsageError(
            f"challenge {challenge!r} is unknown, expected {', '.join(by_name)} or medreason; "
            "Medico's subtask 2 has no public scores."
        )


def _print_overlap_scores(challenge: PredictionsChallenge, file: Path) -> None:
    """Print the scores of predictions_1.json, and where the file states others."""
    scores = predictions_file.scores_of_file(challenge, file)
    for line in public_scores.score_lines(scores, challenge.digits):
        print(line)
    stated = predictions_file.stated_scores(file)
    for metric, value in public_scores.rounded(scores, challenge.digits).items():
        if metric in stated and stated[metric] != value:
            print(f"{metric}: the file states {json.dumps(stated[metric])}, computed {value}")


def _print_medreason_scores(
    file: Path,
    ground_truth: Path | None,
    judge_scores: Path | None,
) -> None:
    """Print the three scores of MedReason, or why one is not computed."""
    if ground_truth is None:
        raise UsageError(
            "medreason: --ground-truth is missing; give the file with the correct options."
        )
    scores = medreason_scores.medreason_scores(file, ground_truth, judge_scores)
    unjudged = "not computed, because there are no judges' scores of open cases"
    lines = {
        f"MCQ Accuracy ({scores.mcq_cases:,} cases)": (scores.mcq_accuracy, "no such cases"),
        f"Open-ended GT ({scores.judged_cases:,} of {scores.open_cases:,} cases)": (
            scores.open_gt,
            unjudged,
        ),
        f"Open-ended VA ({scores.judged_cases:,} of {scores.open_cases:,} cases)": (
            scores.open_va,
            unjudged,
        ),
    }
    for label, (value, reason) in lines.items():
        print(f"{label}: {reason if value is None else f'{value:.4f}'}")

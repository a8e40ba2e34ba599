"""The public scores of MedReason: accuracy, and what the organisers' judges give to open cases.

The rules are those of ``MedReason-Evaluation/scoring.py`` and ``docs/evaluation.md`` of
medreason26/MedReason-Challenge-Docker. The judges' scores of open cases are made by the organisers;
without a file of them, open cases have no score.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from medtasks.api import DataError, Where, text_field, wrong

from medtasks_challenges.json_files import objects_in, parse_json, read_json
from medtasks_challenges.medreason import case_type
from medtasks_challenges.medreason_file import MEMBER


@dataclass(frozen=True)
class Judged:
    """An open case as the organisers' judges score it.

    Args:
        gt_final: agreement of the answer with the ground truth.
        va_answer: visual accuracy of the answer.
        rvf_trace: how far the picture supports the reasoning trace.
    """

    gt_final: float
    va_answer: float
    rvf_trace: float

    @property
    def va_final(self) -> float:
        """The visual accuracy, at most 1 if the trace has up to 1, at most 3 if it has 2.

        >>> Judged(2, 4, 1).va_final, Judged(2, 4, 2).va_final, Judged(2, 4, 3).va_final
        (1, 3, 4)
        """
        if self.rvf_trace <= 1:
            return min(self.va_answer, 1)
        if self.rvf_trace == 2:
            return min(self.va_answer, 3)
        return self.va_answer


@dataclass(frozen=True)
class MedReasonScores:
    """The three scores of the challenge; None if there is nothing to compute one from.

    Args:
        mcq_accuracy: share of multiple-choice cases with the correct option (0..1).
        open_gt: mean ``gt_final`` of open cases, on the judges' scale.
        open_va: mean ``va_final`` of open cases, on the judges' scale.
        mcq_cases, open_cases: numbers of cases.
        judged_cases: open cases that the judges have scored.
    """

    mcq_accuracy: float | None
    open_gt: float | None
    open_va: float | None
    mcq_cases: int
    open_cases: int
    judged_cases: int


def medreason_scores(
    submission: Path, ground_truth: Path, judge_scores: Path | None = None
) -> MedReasonScores:
    """The scores of a submission.

    Args:
        submission: the ZIP file, or ``results.json``.
        ground_truth: the cases with their types, and the correct options.
        judge_scores: the organisers' scores of open cases.

    Raises:
        DataError: a case is missing, unknown, repeated or of another type; an open case lacks its
            reasoning trace; or the judges have scored only some of the open cases.
    """
    answers = _answers(submission)
    truth = _by_case(objects_in(read_json(ground_truth), "cases", ground_truth), ground_truth.name)
    _compare_cases(answers, truth, submission)
    judged = {} if judge_scores is None else _judged(judge_scores)
    correct: list[bool] = []
    open_cases: list[Judged | None] = []
    for case_id, entry in truth.items():
        where = Where(ground_truth.name, 1, case_id, "file")
        if case_type(entry, where) == "mcq":
            label = text_field(entry, "answer", where).strip()
            correct.append(str(answers[case_id]["answer"]).strip() == label)
        else:
            open_cases.append(judged.get(case_id))
    scored = [case for case in open_cases if case is not None]
    if scored and len(scored) < len(open_cases):
        raise DataError(
            f"{judge_scores}: field `scores` has {len(scored):,} of {len(open_cases):,} open "
            "cases, expected all; add the others."
        )
    return MedReasonScores(
        mcq_accuracy=_mean(correct),
        open_gt=_mean([case.gt_final for case in scored]),
        open_va=_mean([case.va_final for case in scored]),
        mcq_cases=len(correct),
        open_cases=len(open_cases),
        judged_cases=len(scored),
    )


def _mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return fmean(values) if values else None


def _answers(path: Path) -> dict[str, Mapping[str, Any]]:
    """The answers of a submission by case, each with the fields that its type requires."""
    answers = _by_case(_entries(path), path.name)
    for case_id, entry in answers.items():
        where = Where(path.name, 1, case_id, "file")
        text_field(entry, "answer", where)
        if case_type(entry, where) == "open":
            text_field(entry, "reasoning_trace", where)
    return answers


def _entries(path: Path) -> list[Mapping[str, Any]]:
    """The entries of ``answers`` in a ZIP file or ``results.json``."""
    if path.suffix.lower() != ".zip":
        return objects_in(read_json(path), "answers", path)
    try:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
            if names != [MEMBER]:
                raise DataError(
                    f"{path}: contains {', '.join(names)}, expected {MEMBER} alone; remove the "
                    "rest."
                )
            text = file.read(MEMBER)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: is not a readable ZIP file ({error}); check it.") from error
    return objects_in(parse_json(text, path), "answers", path)


def _by_case(entries: Sequence[Mapping[str, Any]], name: str) -> dict[str, Mapping[str, Any]]:
    """Entries by their ``case_id``."""
    by_case: dict[str, Mapping[str, Any]] = {}
    for number, entry in enumerate(entries, start=1):
        where = Where(name, number, unit="entry")
        case_id = text_field(entry, "case_id", where).strip()
        if case_id in by_case:
            raise wrong(where, "case_id", case_id, "an id that no other entry has")
        by_case[case_id] = entry
    return by_case


def _compare_cases(
    answers: Mapping[str, Mapping[str, Any]], truth: Mapping[str, Mapping[str, Any]], path: Path
) -> None:
    """Raise an error unless each case has one answer of its type."""
    missing = sorted(truth.keys() - answers.keys())
    unknown = sorted(answers.keys() - truth.keys())
    if missing or unknown:
        named = ", ".join([*missing, *unknown][:5])
        raise DataError(
            f"{path}: field `answers` lacks {len(missing):,} cases and has {len(unknown):,} "
            f"unknown ones ({named}), expected each case once; fix the file."
        )
    for case_id, entry in truth.items():
        where = Where(path.name, 1, case_id, "file")
        expected = case_type(entry, where)
        if case_type(answers[case_id], where) != expected:
            raise wrong(where, "task_type", answers[case_id]["task_type"], expected)


def _judged(path: Path) -> dict[str, Judged]:
    """The organisers' scores of open cases by case."""
    judged: dict[str, Judged] = {}
    for case_id, entry in _by_case(objects_in(read_json(path), "scores", path), path.name).items():
        values = {}
        for field in ("gt_final", "va_answer", "rvf_trace"):
            value = entry.get(field)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise wrong(Where(path.name, 1, case_id, "file"), field, value, "a number")
            values[field] = float(value)
        judged[case_id] = Judged(**values)
    return judged

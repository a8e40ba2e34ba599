"""The public scores of MedReason: accuracy, and what the organisers' judges give to open cases.

The rules are those of ``MedReason-Evaluation/scoring.py`` and ``docs/evaluation.md`` of
medreason26/MedReason-Challenge-Docker. The judges' scores of open cases are made by the organisers;
without a file of them, open cases have no score.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from medtasks.api import DataError, Where, text_field, wrong

from medtasks_challenges.json_files import objects_in, parse_json, read_json, reading_zip
from medtasks_challenges.medreason import case_type
from medtasks_challenges.medreason_file import MEMBER


@dataclass(frozen=True)
class JudgedCase:
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

        >>> JudgedCase(2, 4, 1).va_final, JudgedCase(2, 4, 2).va_final, JudgedCase(2, 4, 3).va_final
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


@dataclass(frozen=True)
class CaseEntry:
    """The entry of a case in a file of the challenge.

    Args:
        fields: the entry.
        where: its place, for messages.
    """

    fields: Mapping[str, Any]
    where: Where

    @property
    def task_type(self) -> str:
        """``mcq`` or ``open``."""
        return case_type(self.fields, self.where)

    def text(self, field: str) -> str:
        """The text of a field, without blanks around it; an error if it has none."""
        return text_field(self.fields, field, self.where).strip()

    def number(self, field: str) -> float:
        """The finite number in a field; an error if it has none."""
        value = self.fields.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong(self.where, field, value, "a finite number")
        if not abs(value) <= sys.float_info.max:  # also NaN, and integers that no float can hold
            raise wrong(self.where, field, value, "a finite number")
        return float(value)


def medreason_scores(
    submission: Path, ground_truth: Path, judge_scores: Path | None = None
) -> MedReasonScores:
    """The scores of a submission.

    Args:
        submission: the ZIP file, or ``results.json``.
        ground_truth: the cases with their types, and the correct options.
        judge_scores: the organisers' scores of open cases.

    Raises:
        DataError: a file cannot be read; a case is missing, unknown, repeated or of another type;
            an open case lacks its reasoning trace; or the judges have scored only some of the open
            cases, or other cases.
    """
    truth = _by_case(read_json(ground_truth), "cases", ground_truth)
    answers = _by_case(_submitted(submission), "answers", submission)
    _refuse_other_cases(answers, truth, submission)
    correct = []
    open_cases = []
    for case_id, case in truth.items():
        answer = answers[case_id]
        if answer.task_type != case.task_type:
            raise wrong(answer.where, "task_type", answer.fields["task_type"], case.task_type)
        label_or_text = answer.text("answer")
        if case.task_type == "mcq":
            correct.append(label_or_text == case.text("answer"))
        else:
            answer.text("reasoning_trace")
            open_cases.append(case_id)
    judged = [] if judge_scores is None else _judged(judge_scores, open_cases)
    return MedReasonScores(
        mcq_accuracy=_mean(correct),
        open_gt=_mean([case.gt_final for case in judged]),
        open_va=_mean([case.va_final for case in judged]),
        mcq_cases=len(correct),
        open_cases=len(open_cases),
        judged_cases=len(judged),
    )


def _mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return fmean(values) if values else None


def _submitted(path: Path) -> Any:
    """The content of ``results.json``, which may be in a ZIP file."""
    if path.suffix.lower() != ".zip":
        return read_json(path)
    with reading_zip(path), zipfile.ZipFile(path) as file:
        names = file.namelist()
        if names != [MEMBER]:
            raise DataError(
                f"{path}: contains {', '.join(names) or 'no file'}, expected {MEMBER} alone; write "
                "the file anew."
            )
        text = file.read(MEMBER)
    return parse_json(text, path)


def _by_case(content: Any, field: str, path: Path) -> dict[str, CaseEntry]:
    """The entries of a file by their ``case_id``."""
    by_case: dict[str, CaseEntry] = {}
    for number, fields in enumerate(objects_in(content, field, path), start=1):
        entry = CaseEntry(fields, Where(path.name, number, unit="entry"))
        case_id = entry.text("case_id")
        if case_id in by_case:
            raise wrong(entry.where, "case_id", case_id, "an id that no other entry has")
        by_case[case_id] = CaseEntry(fields, Where(path.name, number, case_id, "entry"))
    return by_case


def _refuse_other_cases(
    answers: Mapping[str, CaseEntry], truth: Mapping[str, CaseEntry], path: Path
) -> None:
    """Raise an error unless each case has an answer, and each answer a case."""
    missing = sorted(truth.keys() - answers.keys())
    unknown = sorted(answers.keys() - truth.keys())
    if missing or unknown:
        named = ", ".join([*missing, *unknown][:5])
        raise DataError(
            f"{path}: field `answers` lacks {len(missing):,} cases and has {len(unknown):,} "
            f"unknown ones ({named}), expected each case once; fix the file."
        )


def _judged(path: Path, open_cases: Sequence[str]) -> list[JudgedCase]:
    """The organisers' scores of the open cases: of all, or of none."""
    scores = _by_case(read_json(path), "scores", path)
    unknown = sorted(scores.keys() - set(open_cases))
    if unknown:
        raise DataError(
            f"{path}: field `scores` has {len(unknown):,} cases that are not open cases of the "
            f"ground truth ({', '.join(unknown[:5])}), expected open cases alone; fix the file."
        )
    if scores and len(scores) < len(open_cases):
        raise DataError(
            f"{path}: field `scores` has {len(scores):,} of {len(open_cases):,} open cases, "
            "expected all; add the others."
        )
    judged = []
    for entry in scores.values():
        gt_final = entry.number("gt_final")
        va_answer = entry.number("va_answer")
        judged.append(JudgedCase(gt_final, va_answer, entry.number("rvf_trace")))
    return judged

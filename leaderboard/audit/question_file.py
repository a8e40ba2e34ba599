"""The doubtful questions as a CSV file: for `medtasks rate --questions`, and for the owner."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from medtasks.core.text import first_names

from ..exports.csv_scores import Field, csv_field
from ..intake.shown_layouts import is_withheld, layout_of
from ..verify.gold_verdicts import QUESTION_HASH
from .audit_report import AuditReport, DoubtfulQuestion

COLUMNS = (
    "task",
    "sample_id",
    QUESTION_HASH,
    "reasons",
    "signs",
    "strength",
    "probability_wrong",
    "verdict",
    "ratings",
    "question",
    "options",
    "gold",
    "preferred",
    "answers",
)
"""``question_hash`` identifies the question, its options and its gold answer (`content_hash`);
``signs`` are the kinds of signs; ``strength`` is strong or weak; ``probability_wrong`` is that of
the gold answer by the models' votes; ``verdict`` is what most raters said, ``ratings`` what all
said; ``preferred`` is the option that models choose; ``answers`` are the models' options.
"""
_PRIVATE = (QUESTION_HASH, "question", "options", "gold", "preferred", "answers")
"""Columns that are empty where nothing of the samples may be published: whoever guesses a question
and its options could confirm the gold answer by the hash.
"""


def question_csv(report: AuditReport) -> str:
    """The doubtful questions in the order of the report, as in RFC 4180.

    Of benchmarks whose samples may not be published, a row has nothing but the ids and the reasons
    without options.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for question in report.questions:
        fields = _fields(question)
        writer.writerow({name: csv_field(fields[name]) for name in COLUMNS})
    return stream.getvalue()


def withheld_notes(report: AuditReport) -> list[str]:
    """Which benchmarks have no texts in the file, and why."""
    notes = []
    for audit in report.benchmarks:
        is_listed = any(question.benchmark == audit.benchmark for question in report.questions)
        if audit.withheld and is_listed:
            why = layout_of(audit.benchmark).why.rstrip(".")
            notes.append(
                f"{audit.title}: only ids and signs are in the file, without questions, options "
                f"and answers ({why})"
            )
    return notes


def _fields(question: DoubtfulQuestion) -> Mapping[str, Field]:
    """The fields of a row."""
    verdict = question.verdict
    fields: dict[str, Field] = {
        "task": question.task,
        "sample_id": question.sample_id,
        QUESTION_HASH: question.content,
        "reasons": question.reasons,
        "signs": " ".join(sign.kind.value for sign in question.signs),
        "strength": "strong" if question.is_strong else "weak",
        "probability_wrong": _rounded(question.probability_wrong),
        "verdict": "" if verdict is None else verdict.majority or "",
        "ratings": "" if verdict is None else str(verdict),
        "question": question.question,
        "options": "\n".join(f"{label}: {text}" for label, text in question.options.items()),
        "gold": question.gold,
        "preferred": question.rival or "",
        "answers": _answers(question.votes.items()),
    }
    if is_withheld(question.benchmark):
        fields["reasons"] = question.public_reasons
        fields.update(dict.fromkeys(_PRIVATE, ""))
    return fields


def _rounded(probability: float | None) -> float | None:
    """The probability with four digits, never rounded to 1."""
    return None if probability is None else min(round(probability, 4), 0.9999)


def _answers(votes: Iterable[tuple[str, str | None]]) -> str:
    """The models' options; ``-`` for none."""
    answers = [f"{model}: {option or '-'}" for model, option in votes]
    return first_names(answers, len(answers), "; ")

"""``submission_task2.jsonl`` and ``submission_task2.py`` of Medico 2026, subtask 2.

The fields are those of the README of simula/MediaEval-Medico-2026. The organisers' validator
(``medvqa/competitions/medico-2026/task_2.py`` of SushantGautam/MedVQA) requires exactly 1,500 JSON
objects with a ``val_id``, and a script with the dictionary SUBMISSION_INFO. Experts rate the
answers; there are no public scores.
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medtasks.api import Document

from medtasks_challenges.explained import ExplainedReply, read_reply
from medtasks_challenges.run_answers import ChallengeAnswer, first_of
from medtasks_challenges.team import Team

NO_ANSWER = "No answer was given."
NO_EXPLANATION = "No explanation was given."


@dataclass(frozen=True)
class ExplainedRow:
    """One row of the file.

    Args:
        document: the question.
        reply: the answer, the explanation and the confidence.
        problem: what is missing; empty if nothing is.
    """

    document: Document
    reply: ExplainedReply
    problem: str = ""


def explained_rows(
    documents: Sequence[Document], answers: Sequence[ChallengeAnswer]
) -> list[ExplainedRow]:
    """The rows of the file from the raw responses of a run, in order."""
    rows = []
    for document, answer in zip(documents, answers, strict=True):
        reply = read_reply(answer.response)
        problem = answer.problem
        if not problem and reply.status != "ok":
            problem = f"status {reply.status}"
        rows.append(ExplainedRow(document, reply, problem))
    return rows


def with_answers(
    rows: Sequence[ExplainedRow], answers: Mapping[str, ChallengeAnswer]
) -> tuple[list[ExplainedRow], int]:
    """The rows with the answers of another run, which must be those of subtask 1; and how many
    explanations were given for another answer.
    """
    replaced = []
    differing = 0
    for row in rows:
        sample_id = str(row.document["sample_id"])
        answer = answers.get(
            sample_id, ChallengeAnswer(sample_id, problem="not in the run of answers")
        )
        explanation = row.reply.explanation
        if explanation and not answer.problem and answer.answer != row.reply.answer:
            differing += 1
        # with an explanation, only the answer can be missing, which the other run has
        problem = "" if explanation else row.problem
        reply = replace(row.reply, answer=answer.answer)
        replaced.append(replace(row, reply=reply, problem=answer.problem or problem))
    return replaced, differing


def problems_of(rows: Sequence[ExplainedRow]) -> list[str]:
    """The ids of rows with a problem, each with the problem."""
    return [f"{row.document['sample_id']}: {row.problem}" for row in rows if row.problem]


def confidence_line(rows: Sequence[ExplainedRow]) -> str:
    """How many rows state a confidence, and which state one that is left out."""
    stated = sum(row.reply.confidence is not None for row in rows)
    invalid = []
    for row in rows:
        if row.reply.has_invalid_confidence:
            invalid.append(str(row.document["sample_id"]))
    counts = f"confidence_score: {stated:,} stated, {len(invalid):,} invalid and left out"
    return f"{counts} ({first_of(invalid)})" if invalid else counts


def line(val_id: int, row: ExplainedRow) -> dict[str, Any]:
    """The object of one row. What is missing is stated in words; an optional field is left out."""
    fields: dict[str, Any] = {
        "val_id": val_id,
        "img_id": row.document["img_id"],
        "question": row.document["question"],
        "answer": row.reply.answer or NO_ANSWER,
        "textual_explanation": row.reply.explanation or NO_EXPLANATION,
    }
    if row.reply.confidence is not None:
        fields["confidence_score"] = row.reply.confidence
    return fields


def jsonl(rows: Sequence[ExplainedRow]) -> str:
    """The text of ``submission_task2.jsonl``."""
    lines = []
    for val_id, row in enumerate(rows):
        lines.append(json.dumps(line(val_id, row), ensure_ascii=False) + "\n")
    return "".join(lines)


def script(team: Team) -> str:
    """The text of ``submission_task2.py``: the dictionary SUBMISSION_INFO."""
    fields = pprint.pformat(team.submission_info, width=100, sort_dicts=False)
    return f"SUBMISSION_INFO = {fields}\n"

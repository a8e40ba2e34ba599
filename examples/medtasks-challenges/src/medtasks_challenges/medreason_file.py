"""The submission archive of MedReason: a ZIP file that contains ``results.json`` and nothing else.

The format is that of ``MedReason-Evaluation/docs/submission_format.md`` of
medreason26/MedReason-Challenge-Docker. The official evaluation runs containers on hidden cases, and
refuses containers that contain answers.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.api import DataError, Document

from medtasks_challenges import medreason
from medtasks_challenges.explained import read_reply
from medtasks_challenges.run_answers import ChallengeAnswer

BENCHMARK = medreason.NAME
MEMBER = "results.json"
NO_ANSWER = "No answer was given."
NO_REASONING = "No reasoning was given."
_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time of an entry: equal answers make equal archives."""


@dataclass(frozen=True)
class CaseAnswer:
    """The answer to one case.

    Args:
        document: the case.
        answer: the label of an option, or a text; empty if it is missing.
        reasoning: the reasoning trace; empty if it is missing.
        problem: what the file needs and the reply lacks; empty if it lacks nothing.
    """

    document: Document
    answer: str
    reasoning: str
    problem: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the case has no options."""
        return bool(self.document["task_type"] == "open")


def documents() -> list[Document]:
    """All cases, in the order of ``cases.json``."""
    return medreason.all_rows.documents(media=False)


def case_answers(cases: Sequence[Document], answers: Sequence[ChallengeAnswer]) -> list[CaseAnswer]:
    """The answers of a run to the cases, in order.

    Raises:
        DataError: the run was asked another case under an id.
    """
    answered = []
    for document, answer in zip(cases, answers, strict=True):
        _refuse_other_case(document, answer)
        if document["task_type"] == "open":
            answered.append(_open_answer(document, answer))
        else:
            answered.append(_option_answer(document, answer))
    return answered


def _refuse_other_case(document: Document, answer: ChallengeAnswer) -> None:
    """Raise an error if the run was asked something else: ids are the organisers', who may use them
    again in another phase.
    """
    if not answer.asked:
        return
    for name in ("task_type", "question", "choices"):
        asked, prepared = answer.asked.get(name), document.get(name)
        if asked != prepared:
            raise DataError(
                f"case {answer.sample_id}: the run was asked with `{name}` {asked!r:.80}, but it "
                f"is {prepared!r:.80} in the prepared data; prepare the data of the run, or "
                "repeat the run."
            )


def _open_answer(document: Document, answer: ChallengeAnswer) -> CaseAnswer:
    """The answer to an open case, which needs a reasoning trace."""
    reply = read_reply(answer.response)
    return CaseAnswer(document, reply.answer, reply.explanation, answer.problem)


def _option_answer(document: Document, answer: ChallengeAnswer) -> CaseAnswer:
    """The answer to a multiple-choice case, which must be the label of one of its options."""
    labels = document["choices"]
    problem = answer.problem
    if not problem and answer.answer not in labels:
        problem = f"{answer.answer} is not one of the options {', '.join(labels)}"
    label = "" if problem else answer.answer
    return CaseAnswer(document, label, read_reply(answer.response).explanation, problem)


def problems_of(answers: Sequence[CaseAnswer], task_type: str) -> list[str]:
    """The ids of cases of a type whose answer has a problem, each with the problem."""
    problems = []
    for answer in answers:
        if answer.problem and answer.document["task_type"] == task_type:
            problems.append(f"{answer.document['sample_id']}: {answer.problem}")
    return problems


def results(answers: Sequence[CaseAnswer], name: str) -> dict[str, Any]:
    """The content of ``results.json``; what open cases lack is stated in words."""
    entries = []
    for answer in answers:
        entry = {
            "case_id": answer.document["sample_id"],
            "task_type": answer.document["task_type"],
            "answer": answer.answer or NO_ANSWER,
        }
        reasoning = answer.reasoning
        if answer.is_open:
            reasoning = reasoning or NO_REASONING
        if reasoning:
            entry["reasoning_trace"] = reasoning
        entries.append(entry)
    return {
        "name": name,
        "type": "Medical visual reasoning",
        "answers": entries,
        "version": {"major": 1, "minor": 0},
    }


def archive(content: Mapping[str, Any]) -> bytes:
    """The bytes of the ZIP file."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        entry = zipfile.ZipInfo(MEMBER, _TIME)
        entry.compress_type = zipfile.ZIP_DEFLATED
        file.writestr(entry, text.encode())
    return stream.getvalue()

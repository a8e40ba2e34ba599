"""The answers of a run, by sample: what a challenge file contains, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import medtasks
from medtasks.api import DataError, Document, UsageError

_MOST_NAMED = 5


@dataclass(frozen=True)
class ChallengeAnswer:
    """The answer to one document.

    Args:
        sample_id: id of the document.
        answer: the extracted answer; empty if there is none.
        response: the raw response; empty if there is none.
        problem: why there is no answer; empty if there is one.
        asked: the document as the run has it; empty if the run was not asked.
    """

    sample_id: str
    answer: str = ""
    response: str = ""
    problem: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)


def only_run(path: Path) -> medtasks.Run:
    """The finished run at or below a path.

    Raises:
        UsageError: there is none, there are several, or it is unfinished.
    """
    runs = medtasks.open(path)
    if len(runs) > 1:
        raise UsageError(f"{path}: contains {len(runs)} runs, expected one; give its directory.")
    (run,) = runs
    if run.unfinished:
        raise UsageError(f"{path}: the run is unfinished; repeat its command to finish it.")
    return run


def answers_of(
    run: medtasks.Run, tasks: Sequence[str], option: str = "--task"
) -> dict[str, ChallengeAnswer]:
    """The answers of some tasks of a run, by sample id; ``option`` is what selects the tasks.

    Raises:
        UsageError: the run lacks one of the tasks.
        DataError: a question has several responses, or two of the tasks ask it.
    """
    answers: dict[str, ChallengeAnswer] = {}
    for task in dict.fromkeys(tasks):
        if task not in run.manifest.tasks:
            available = ", ".join(sorted(run.manifest.tasks))
            raise UsageError(
                f"{run.name}: the run has no task {task}, only {available}; "
                f"name those that ask these questions with {option}."
            )
        for sample in run.samples(task).arrow.to_pylist():
            answer = replace(_answer(sample), asked=json.loads(sample["document"]))
            if answer.sample_id in answers:
                raise DataError(
                    f"{run.name}: sample {answer.sample_id} is in several of the tasks "
                    f"{', '.join(tasks)}, expected in one; give fewer of them with {option}."
                )
            answers[answer.sample_id] = answer
    return answers


def _answer(sample: Mapping[str, Any]) -> ChallengeAnswer:
    """The answer in a row of the table of samples."""
    sample_id = str(sample["sample_id"])
    if len(sample["responses"]) > 1:
        raise DataError(
            f"sample {sample_id}: has {len(sample['responses'])} responses, expected one; "
            "run the task without repeats."
        )
    if sample["failed"]:
        return ChallengeAnswer(sample_id, problem=f"the request failed ({sample['failed']})")
    response = str(sample["response"] or "")
    if sample["status"] != "ok":
        return ChallengeAnswer(sample_id, response=response, problem=f"status {sample['status']}")
    return ChallengeAnswer(sample_id, str(sample["filtered"]), response)


def in_order(
    documents: Iterable[Document], answers: Mapping[str, ChallengeAnswer]
) -> list[ChallengeAnswer]:
    """The answers in the order of the documents; one that the run was not asked has a problem."""
    ordered = []
    for document in documents:
        sample_id = str(document["sample_id"])
        unasked = ChallengeAnswer(sample_id, problem="not in the run")
        ordered.append(answers.get(sample_id, unasked))
    return ordered


def problems_of(answers: Iterable[ChallengeAnswer]) -> list[str]:
    """The ids of answers with a problem, each with the problem."""
    return [f"{answer.sample_id}: {answer.problem}" for answer in answers if answer.problem]


def refuse_missing(problems: Sequence[str], total: int, advice: str) -> None:
    """Raise an error that names the first problems, if there is one.

    Raises:
        DataError: something is missing.
    """
    if not problems:
        return
    raise DataError(
        f"answers are missing for {len(problems):,} of {total:,} rows ({first_of(problems)}); "
        f"{advice}"
    )


def first_of(texts: Sequence[str]) -> str:
    """The first five texts, and the number of the others.

    >>> first_of(["a", "b", "c", "d", "e", "f", "g"])
    'a; b; c; d; e; and 2 more'
    """
    named = "; ".join(texts[:_MOST_NAMED])
    further = len(texts) - _MOST_NAMED
    return f"{named}; and {further:,} more" if further > 0 else named


def refuse_partial(documents: Sequence[Document], expected: int) -> None:
    """Raise an error unless the documents are as many as the challenge asks about.

    Raises:
        DataError: they are not, as with miniature data or a subset.
    """
    if len(documents) != expected:
        raise DataError(
            f"the prepared data have {len(documents):,} of the challenge's rows, expected "
            f"{expected:,}; prepare the whole test split, and unset MEDTASKS_DATA=mini and "
            "MEDTASKS_SUBSET."
        )


def prepared_rows(run: medtasks.Run, benchmark: str) -> int:
    """How many rows the benchmark's data had when the run was made.

    Raises:
        UsageError: the run asked none of them.
    """
    facts = run.manifest.data.get(benchmark)
    if facts is None:
        raise UsageError(
            f"{run.name}: the run asked nothing of {benchmark}, only of "
            f"{', '.join(sorted(run.manifest.data))}; give another run."
        )
    return facts.records

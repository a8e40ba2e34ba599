"""What runs should not have in common: responses, or data with other questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import NamedTuple

from medtasks.catalog.spec import load_spec

from .scored_run import ScoredRun

Conflicts = dict[str, dict[str, list[str]]]
"""The tasks on which two runs conflict: ``conflicts[run_key][other_run_key]``, in both orders."""


class _TaskData(NamedTuple):
    """A task on one state of its data, identified by the fingerprint that a run claims."""

    task: str
    fingerprint: str


class _TaskResponses(NamedTuple):
    """All responses to a task, identified by their hash."""

    task: str
    responses: str


@dataclass(frozen=True)
class _QuestionGroup:
    """Runs with the same questions and gold answers: ``questions`` are hashes by sample id."""

    questions: Mapping[str, str]
    runs: list[ScoredRun]


def contradictions(runs: Iterable[ScoredRun]) -> Conflicts:
    """The tasks on which two runs claim the same data, but have other questions or gold answers.

    Both have the same fingerprint, so the documents of at least one of them are not the data's.
    """
    conflicts: Conflicts = defaultdict(lambda: defaultdict(list))
    for data, runs_on_data in _runs_by_data(runs).items():
        groups = _question_groups(data.task, runs_on_data)
        for first, second in permutations(groups, 2):
            if not _contradict(first.questions, second.questions):
                continue
            for run, opponent in product(first.runs, second.runs):
                conflicts[run.public.key][opponent.public.key].append(data.task)
    return conflicts


def _runs_by_data(runs: Iterable[ScoredRun]) -> dict[_TaskData, list[ScoredRun]]:
    """The runs that claim the same data of a task, by task and data."""
    by_data: dict[_TaskData, list[ScoredRun]] = defaultdict(list)
    for run in runs:
        for task in run.record.questions:
            benchmark = load_spec(task).metadata.benchmark
            fingerprint = run.manifest.data[benchmark].fingerprint
            by_data[_TaskData(task, fingerprint)].append(run)
    return by_data


def _question_groups(task: str, runs: Iterable[ScoredRun]) -> list[_QuestionGroup]:
    """The runs, grouped by their questions of the task.

    Nearly all runs have equal questions, so comparing groups is much faster than comparing runs.
    """
    groups: list[_QuestionGroup] = []
    for run in runs:
        questions = run.record.questions[task]
        for group in groups:
            if group.questions == questions:
                group.runs.append(run)
                break
        else:
            groups.append(_QuestionGroup(questions, [run]))
    return groups


def _contradict(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether a sample that both have differs in its question or gold answer."""
    shared_samples = first.keys() & second.keys()
    return any(first[sample_id] != second[sample_id] for sample_id in shared_samples)


def same_responses(runs: Iterable[ScoredRun]) -> Conflicts:
    """The tasks on which runs of two different models have exactly the same responses.

    One is a copy of the other, or they agree by coincidence.
    """
    conflicts: Conflicts = defaultdict(lambda: defaultdict(list))
    for task_responses, same_runs in _runs_by_responses(runs).items():
        for run, copy in permutations(same_runs, 2):
            if run.model != copy.model:
                conflicts[run.public.key][copy.public.key].append(task_responses.task)
    return conflicts


def _runs_by_responses(runs: Iterable[ScoredRun]) -> dict[_TaskResponses, list[ScoredRun]]:
    """The runs with the same responses to a task; tasks without any response are left out."""
    by_responses: dict[_TaskResponses, list[ScoredRun]] = defaultdict(list)
    for run in runs:
        for task, responses in run.record.responses.items():
            if responses:
                by_responses[_TaskResponses(task, responses)].append(run)
    return by_responses

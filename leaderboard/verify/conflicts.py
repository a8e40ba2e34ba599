"""What runs should not have in common: responses, or data with other questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, product

from medtasks.catalog.spec import load_spec

from .scored_run import ScoredRun


def contradictions(runs: Iterable[ScoredRun]) -> dict[str, dict[str, list[str]]]:
    """By run, the runs that claim the same data with other documents, with the tasks.

    Their questions or gold answers differ, so the data of one of them are invented.
    """
    by_data: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        for task in run.record.questions:
            benchmark = load_spec(task).metadata.benchmark
            by_data[task, run.manifest.data[benchmark].fingerprint].append(run)
    conflicts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (task, _), runs_on_data in by_data.items():
        for first, second in permutations(_by_questions(task, runs_on_data), 2):
            if _contradict(first[0].record.questions[task], second[0].record.questions[task]):
                for run, opponent in product(first, second):
                    conflicts[run.public.key][opponent.public.key].append(task)
    return conflicts


def _by_questions(task: str, runs: Sequence[ScoredRun]) -> list[list[ScoredRun]]:
    """The runs in sets with equal questions: most runs have, so only sets are compared."""
    sets: list[list[ScoredRun]] = []
    for run in runs:
        for members in sets:
            if members[0].record.questions[task] == run.record.questions[task]:
                members.append(run)
                break
        else:
            sets.append([run])
    return sets


def _contradict(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether a sample in both has different questions or gold answers."""
    return any(first[sample] != second[sample] for sample in first.keys() & second.keys())


def same_responses(runs: Iterable[ScoredRun]) -> dict[str, dict[str, list[str]]]:
    """By run, the runs of other models with the same responses, with the tasks.

    They are a copy, or a coincidence.
    """
    by_responses: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        for task, responses in run.record.responses.items():
            by_responses[task, responses].append(run)
    copies: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (task, responses), same_runs in by_responses.items():
        if not responses:
            continue
        for run, copy in permutations(same_runs, 2):
            if run.model != copy.model:
                copies[run.public.key][copy.public.key].append(task)
    return copies

"""What runs should not have in common: the responses of another model, or data with other questions
in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import permutations, product

from medtasks.catalog.spec import load_spec

from .scored_run import ScoredRun


def contradictions(runs: Iterable[ScoredRun]) -> dict[str, dict[str, list[str]]]:
    """By run, the runs that claim the same data with other questions or gold answers, with the
    tasks: the data of one of them are invented."""
    by_data: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        for task in run.questions:
            benchmark = load_spec(task).metadata.benchmark
            by_data[task, run.manifest.data[benchmark].fingerprint].append(run)
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (task, _), several in by_data.items():
        # most runs have equal questions, so only different sets are compared
        alike: list[list[ScoredRun]] = []
        for run in several:
            same = next(
                (members for members in alike if members[0].questions[task] == run.questions[task]),
                None,
            )
            if same is None:
                alike.append([run])
            else:
                same.append(run)
        for first, second in permutations(alike, 2):
            if _contradict(first[0].questions[task], second[0].questions[task]):
                for run, other in product(first, second):
                    found[run.public.key][other.public.key].append(task)
    return found


def _contradict(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    return any(first[sample] != second[sample] for sample in first.keys() & second.keys())


def same_responses(runs: Iterable[ScoredRun]) -> dict[str, dict[str, list[str]]]:
    """By run, the runs of other models with the same responses, with the tasks: a copy, or a
    coincidence."""
    by_responses: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        for key in run.responses.items():
            by_responses[key].append(run)
    copies: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (task, responses), several in by_responses.items():
        for one, other in permutations(several, 2):
            if responses and one.model != other.model:
                copies[one.public.key][other.public.key].append(task)
    return copies

"""Several pairs of runs, such as base and tuned models, over the tasks of a group: sign test and Wilcoxon's test.

Each pair and task gives one difference, tuned - base, over the items with a value in both runs. The tests ask whether
these differences lean to one side. A task with few items counts as much as one with many, and the differences of one
pair are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scipy.stats import binomtest, wilcoxon

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import UsageError
from medtasks.core.text import first_names
from medtasks.metrics.registry import get_metric

from ..board.board import Unit
from ..board.columns import unit_of
from ..verify.scored_run import ScoredRun
from .compare import compare_runs


@dataclass(frozen=True)
class TaskDifference:
    """``tuned`` - ``base`` (slugs of models) in one task; ``difference`` is None for the ``reason`` given. ``unlike``
    says why the two scores are not comparable."""

    base: str
    tuned: str
    task: str
    difference: float | None
    reason: str | None
    unlike: tuple[str, ...]


@dataclass(frozen=True)
class LeaningTest:
    """Whether the differences of all pairs in the tasks of a group, in one metric, lean to one side.

    ``better`` and ``worse`` count differences for and against the tuned models, in the metric's direction; equal scores
    count in neither, and both tests leave them out. p-values are two-sided; None if no difference is left. ``least_p``
    is the lowest that either test can reach with this number of differences.
    """

    group: str
    metric: str
    unit: Unit
    differences: tuple[TaskDifference, ...]
    better: int
    worse: int
    sign_p: float | None
    wilcoxon_p: float | None
    least_p: float


def compare_pairs(
    pairs: Sequence[tuple[ScoredRun, ScoredRun]],
    *,
    group: str | None = None,
    metric: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[LeaningTest]:
    """The tests of every group and metric that all runs share.

    Args:
        pairs: base and tuned run of each pair.
        group: only this group.
        metric: only this metric.
        progress: called with (done, total).

    Raises:
        UsageError: the runs share no group of several tasks, or not ``group`` or ``metric``.
    """
    places = list(_places(pairs, group, metric))
    if not places:
        asked = " ".join(filter(None, (group and f"--task {group}", metric and f"--metric {metric}")))
        raise UsageError(
            f"{asked or 'the runs'}: the runs share {first_names(sorted(_shared(pairs)), 12) or 'no task'}, expected a "
            "group of several tasks with a metric in common; give runs of one."
        )
    total = len(places) * len(pairs)
    tests: list[LeaningTest] = []
    for name, one, tasks in places:
        differences: list[TaskDifference] = []
        for base, tuned in pairs:
            differences += [_difference(base, tuned, task, one) for task in tasks]
            if progress is not None:
                progress(len(tests) * len(pairs) + len(differences) // len(tasks), total)
        tests.append(_tested(name, one, differences))
    return tests


def _shared(pairs: Sequence[tuple[ScoredRun, ScoredRun]]) -> set[str]:
    runs = [run for pair in pairs for run in pair]
    return set.intersection(*({*run.entries} for run in runs))


def _places(
    pairs: Sequence[tuple[ScoredRun, ScoredRun]], group: str | None, metric: str | None
) -> Iterator[tuple[str, str, list[str]]]:
    """Groups and metrics to test, with the group's tasks."""
    runs, shared = [run for pair in pairs for run in pair], _shared(pairs)
    for name in sorted(shared) if group is None else [group]:
        tasks = [task for task in leaf_tasks(name) if task in shared]
        if name not in shared or load_spec(name).kind != "group" or len(tasks) < 2:
            continue
        for one in runs[0].entries[tasks[0]].statistics:
            everywhere = all(one in run.entries[task].statistics for run in runs for task in tasks)
            if everywhere and metric in (None, one):
                yield name, one, tasks


def _difference(base: ScoredRun, tuned: ScoredRun, task: str, metric: str) -> TaskDifference:
    (line,) = compare_runs(tuned, base, task=task, metric=metric).lines
    return TaskDifference(
        base=base.model,
        tuned=tuned.model,
        task=task,
        difference=None if line.pair is None else line.pair.difference,
        reason=line.reason if line.pair is None else None,
        unlike=line.unlike,
    )


def _tested(group: str, metric: str, differences: Sequence[TaskDifference]) -> LeaningTest:
    sign = 1 if get_metric(metric).higher_is_better else -1
    leaning = [sign * one.difference for one in differences if one.difference]
    better = sum(one > 0 for one in leaning)
    return LeaningTest(
        group=group,
        metric=metric,
        unit=unit_of(metric),
        differences=tuple(differences),
        better=better,
        worse=len(leaning) - better,
        sign_p=float(binomtest(better, len(leaning)).pvalue) if leaning else None,
        wilcoxon_p=float(wilcoxon(leaning).pvalue) if leaning else None,
        least_p=min(1.0, 2.0 ** (1 - len(leaning))),
    )

"""Several pairs of runs, such as base and tuned models, compared over the tasks of a group.

Each pair and task gives one difference, tuned - base, over the items with a value in both runs, and
the tests ask whether these differences lean to one side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import UsageError
from medtasks.core.text import first_names
from medtasks.metrics.facts import Unit
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.stats.sign_flips import rounded_differences, signed_rank_p

from ..verify.scored_run import ScoredRun
from .compare import compared_lines, shared_metrics

RunPair = tuple[ScoredRun, ScoredRun]
"""A base and a tuned run."""


@dataclass(frozen=True)
class TaskDifference:
    """``tuned`` - ``base`` (slugs of models) in one task.

    ``difference`` is None for the ``reason`` given. ``unlike`` says why the two scores are not
    comparable.
    """

    base: str
    tuned: str
    task: str
    difference: float | None
    reason: str | None
    unlike: tuple[str, ...]


@dataclass(frozen=True)
class LeaningTest:
    """Whether the differences of all pairs in the tasks of a group lean to one side.

    ``better`` and ``worse`` count differences for and against the tuned models, in the metric's
    direction; equal scores count in neither, and both tests leave them out. p-values are two-sided;
    None if no difference is left. ``least_p`` is the lowest that either test can reach with this
    number of differences.
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


@dataclass(frozen=True)
class _GroupMetric:
    """A metric that all runs have in several tasks of a group."""

    group: str
    metric: str
    tasks: Sequence[str]


def compare_pairs(
    pairs: Sequence[RunPair],
    *,
    group: str | None = None,
    metric: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[LeaningTest]:
    """The tests over pairs of a base and a tuned run, for every group and metric that all share.

    Args:
        pairs: base and tuned runs.
        group: test only this group.
        metric: test only this metric.
        progress: called with the number of comparisons done and of all.

    Raises:
        UsageError: the runs share no group of several tasks with a metric.
    """
    runs = list(chain.from_iterable(pairs))
    group_metrics = _shared_group_metrics(runs, group, metric)
    tests: list[LeaningTest] = []
    for group_metric in group_metrics:
        differences: list[TaskDifference] = []
        for number, pair in enumerate(pairs, start=1):
            differences += _task_differences(pair, group_metric)
            if progress is not None:
                done = len(tests) * len(pairs) + number
                progress(done, len(group_metrics) * len(pairs))
        tests.append(_leaning_test(group_metric, differences))
    return tests


def _shared_group_metrics(
    runs: Sequence[ScoredRun], group: str | None, metric: str | None
) -> list[_GroupMetric]:
    """The groups of several tasks, and their metrics, that all runs have.

    Raises:
        UsageError: there are none, or not the ``group`` or ``metric`` asked for.
    """
    shared = set.intersection(*[set(run.entries) for run in runs])
    names = sorted(shared) if group is None else [group]
    group_metrics: list[_GroupMetric] = []
    for name in names:
        tasks = [task for task in leaf_tasks(name) if task in shared]
        is_shared_group = name in shared and load_spec(name).kind == "group"
        if is_shared_group and len(tasks) > 1:
            group_metrics += _group_metrics(runs, name, tasks, metric)
    if not group_metrics:
        raise _nothing_shared(shared, group, metric)
    return group_metrics


def _group_metrics(
    runs: Sequence[ScoredRun], group: str, tasks: Sequence[str], metric: str | None
) -> Iterator[_GroupMetric]:
    """The metrics that all runs have in all of these tasks of a group."""
    task_metrics = [shared_metrics(runs, task) for task in tasks]
    for name in task_metrics[0]:
        is_in_all = all(name in metrics for metrics in task_metrics)
        if is_in_all and metric in (None, name):
            yield _GroupMetric(group, name, tasks)


def _nothing_shared(shared: Collection[str], group: str | None, metric: str | None) -> UsageError:
    """The error that the runs share no group of several tasks with a metric."""
    options = []
    if group:
        options.append(f"--task {group}")
    if metric:
        options.append(f"--metric {metric}")
    subject = " ".join(options) or "the runs"
    names = first_names(sorted(shared), 12) or "no task"
    return UsageError(
        f"{subject}: the runs share {names}, expected a group of several tasks with a metric in "
        "common; give runs of one."
    )


def _task_differences(pair: RunPair, group_metric: _GroupMetric) -> Iterator[TaskDifference]:
    """The difference between a base and a tuned run in each task."""
    base, tuned = pair
    for task in group_metric.tasks:
        metrics = [group_metric.metric]
        (line,) = compared_lines(tuned.entries[task], base.entries[task], metrics)
        difference = None if line.pair is None else line.pair.difference
        reason = line.reason if line.pair is None else None
        yield TaskDifference(base.model, tuned.model, task, difference, reason, line.unlike)


def _leaning_test(group_metric: _GroupMetric, differences: Sequence[TaskDifference]) -> LeaningTest:
    """The sign test and Wilcoxon's signed-rank test of the differences."""
    from scipy.stats import binomtest  # slow to import, and few comparisons are of several pairs

    sign = 1 if get_metric(group_metric.metric).higher_is_better else -1
    values = [task.difference for task in differences if task.difference is not None]
    leaning = rounded_differences(sign * np.array(values, dtype=np.float64))
    leaning = leaning[leaning != 0]
    count = len(leaning)
    better = int(np.count_nonzero(leaning > 0))
    return LeaningTest(
        group=group_metric.group,
        metric=group_metric.metric,
        unit=unit_of(group_metric.metric),
        differences=tuple(differences),
        better=better,
        worse=count - better,
        sign_p=float(binomtest(better, count).pvalue) if count else None,
        wilcoxon_p=signed_rank_p(leaning) if count else None,
        least_p=min(1.0, 2.0 ** (1 - count)),
    )

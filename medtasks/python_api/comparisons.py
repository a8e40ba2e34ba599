"""Runs compared item by item, and the differences that subsets can detect, as the commands do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medtasks.leaderboard.rank.compare import compare_runs
from medtasks.leaderboard.rank.comparison import Comparison
from medtasks.leaderboard.rank.corrected_comparison import with_corrected
from medtasks.leaderboard.rank.plan_basis import ICC
from medtasks.leaderboard.rank.planning import SHARES, Plan, SpreadSource, plan_task
from medtasks.python_api.runs import AnyRun, scored_of


def compare(
    first: AnyRun,
    second: AnyRun,
    *,
    task: str | None = None,
    metric: str | None = None,
    human: str | Path | None = None,
    progress: Any = None,
) -> Comparison:
    """The comparison of two runs item by item, as ``medtasks compare`` prints it.

    Args:
        first: a run, or a directory that contains one.
        second: another.
        task: only this task or group.
        metric: only this metric.
        human: ratings by people (a rating file, a folder of them, or a CSV file) that also correct
            the differences in judged scores: ``corrected`` of the comparison.
        progress: called with (done, total).

    Raises:
        UsageError: the runs have no task in common, or lack ``task`` or ``metric``, or the labels
            correct none of their differences.
        MedtasksError: a run or the labels cannot be read.
    """
    is_corrected = human is not None
    runs = (scored_of(first, whole=is_corrected), scored_of(second, whole=is_corrected))
    comparison = compare_runs(*runs, task=task, metric=metric, progress=progress)
    if human is None:
        return comparison
    return with_corrected(comparison, runs, Path(human), task=task, metric=metric)


def plan(
    task: str,
    metric: str | None = None,
    *,
    pilots: Sequence[AnyRun] = (),
    score: float | None = None,
    icc: float = ICC,
    difference: float | None = None,
    shares: Sequence[float] = SHARES,
) -> Plan:
    """The minimum detectable differences of subsets of a task or group, as ``medtasks plan`` prints
    them.

    Args:
        task: the task or group.
        metric: by default the first headline score.
        pilots: one run or two that show the spread; without any, it is assumed.
        score: expected accuracy, without a pilot.
        icc: correlation of answers in one cluster, without a pilot.
        difference: also find the number of clusters that detects it, in points or the metric's
            unit.
        shares: of the clusters, above 0 and up to 1.

    Raises:
        UsageError: an argument is wrong, the data have no documents of the task, or the spread is
            unknown.
        NotPreparedError: the data are not prepared.
    """
    scored = [scored_of(pilot) for pilot in pilots]
    spread = SpreadSource(scored, score, icc)
    return plan_task(task, metric, spread, difference=difference, shares=shares)

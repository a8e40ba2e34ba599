"""The latency of two runs side by side, if both had the same setup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from medtasks.runs.times import Times
from medtasks.scoring.latency import Latency, observed_requests
from medtasks.stats.quantiles import Estimate, quantile

from ..verify.scored_run import ScoredRun
from .latency_setups import LatencySetup

_HALF = 0.5
"""The share of the requests up to the median."""


@dataclass(frozen=True)
class LatencyComparison:
    """The latency of two runs in one task or group, which both had the same ``setup``.

    ``difference`` is the median of the differences of the seconds, first - second, over the
    ``paired`` requests that both runs measured, in so many ``clusters``. It is None without any, or
    if requests were answered in batches, which have the seconds of whole batches.
    """

    task: str
    first: Latency
    second: Latency
    setup: LatencySetup
    paired: int = 0
    clusters: int = 0
    difference: Estimate | None = None


@dataclass(frozen=True)
class LatencyNotCompared:
    """Why the latency of two runs, which are called A and B, is not compared in a task or group."""

    task: str
    reason: str


def compare_latency(
    runs: tuple[ScoredRun, ScoredRun], times: tuple[Times, Times], task: str
) -> LatencyComparison | LatencyNotCompared | None:
    """The latency of two runs in a task or group; None if neither has seconds.

    Args:
        runs: the two runs.
        times: the times of the requests of each.
        task: the task or group.
    """
    first, second = (_with_seconds(run, task) for run in runs)
    if first is None and second is None:
        return None
    if first is None:
        return LatencyNotCompared(task, f"A: {_why_none(runs[0], task)}")
    if second is None:
        return LatencyNotCompared(task, f"B: {_why_none(runs[1], task)}")
    setup = LatencySetup.of(first, runs[0].latency.processes)
    second_setup = LatencySetup.of(second, runs[1].latency.processes)
    if setup != second_setup:
        return LatencyNotCompared(task, f"A ran on {setup}, B on {second_setup}")
    if setup.batched != "none":
        return LatencyComparison(task, first, second, setup)
    differences, clusters = _differences(runs, times, task)
    difference = None
    if differences:
        difference = quantile(np.array(differences), clusters, _HALF)
    number = len(set(clusters))
    return LatencyComparison(task, first, second, setup, len(differences), number, difference)


def _with_seconds(run: ScoredRun, task: str) -> Latency | None:
    """The latency of a run in a task or group, if any of its requests was measured."""
    latency = run.latency.entries.get(task)
    return latency if latency is not None and latency.measured else None


def _why_none(run: ScoredRun, task: str) -> str:
    """Why a run has no latency in a task or group."""
    return run.latency.reason or f"no seconds of {task}"


def _differences(
    runs: tuple[ScoredRun, ScoredRun], times: tuple[Times, Times], task: str
) -> tuple[list[float], list[str]]:
    """The differences in seconds of the requests that both runs measured, and their clusters."""
    first_run, second_run = runs
    first_times, second_times = times
    differences: list[float] = []
    clusters: list[str] = []
    for member in first_run.manifest.groups.get(task, (task,)):
        first = _measured(first_run, member, first_times)
        second = _measured(second_run, member, second_times)
        for place in sorted(first.keys() & second.keys()):
            differences.append(first[place].seconds - second[place].seconds)
            clusters.append(first[place].cluster)
    return differences, clusters


class _MeasuredRequest(NamedTuple):
    """The seconds of a request, and the cluster of its sample."""

    seconds: float
    cluster: str


def _measured(
    run: ScoredRun, task: str, times: Times
) -> dict[tuple[str, int, int], _MeasuredRequest]:
    """The measured requests of a task by sample, repeat and round; none if the run lacks it."""
    measured: dict[tuple[str, int, int], _MeasuredRequest] = {}
    if task not in run.record.tasks:
        return measured
    for time, cluster in observed_requests(run.record, task, times.get(task, ())):
        if time.seconds is not None and not time.failed:
            measured[time.order] = _MeasuredRequest(time.seconds, cluster)
    return measured

"""Two runs on the same questions: the difference in every shared score, and its significance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from medtasks.core.errors import UsageError
from medtasks.core.schema import suggestion
from medtasks.core.text import counted, first_names
from medtasks.metrics.base import Array
from medtasks.metrics.registry import unit_of
from medtasks.runs.signature import differences, has_unknown_prompts
from medtasks.scoring.columns import without_value
from medtasks.scoring.comparisons import compare_statistics
from medtasks.stats.student import detectable_difference

from ..verify.entries import Entry
from ..verify.scored_run import ScoredRun
from .comparison import Comparison, ComparisonLine
from .pairs import pair_of, with_holm
from .shared_items import SharedRows, shared_rows


def compare_runs(
    first: ScoredRun,
    second: ScoredRun,
    *,
    task: str | None = None,
    metric: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """The comparison of two runs item by item, in every score that both have.

    Unless they are asked for by name, metrics that apply to no item of either run are left out, and
    those of a group that its only task has, too.

    Args:
        first: the run A.
        second: the run B.
        task: compare only this task or group.
        metric: compare only this metric.
        progress: called with the number of tasks and groups done and of all.

    Raises:
        UsageError: the runs have no score in common, or not this one.
    """
    names = _shared_names(first, second, task)
    metrics_by_name = {name: shared_metrics((first, second), name) for name in names}
    if metric is not None:
        _require_metric(metric, metrics_by_name)
    if task is None and metric is None:
        metrics_by_name = _worth_showing(metrics_by_name, first, second)
    lines: list[ComparisonLine] = []
    for number, (name, metrics) in enumerate(metrics_by_name.items(), start=1):
        if metric is not None:
            metrics = [metric] if metric in metrics else []
        lines += compared_lines(first.entries[name], second.entries[name], metrics)
        if progress is not None:
            progress(number, len(metrics_by_name))
    return Comparison(first=first.model, second=second.model, lines=_corrected(lines))


def _shared_names(first: ScoredRun, second: ScoredRun, task: str | None) -> list[str]:
    """The tasks and groups of both runs, those with most items first; only ``task`` if given."""
    in_both = first.entries.keys() & second.entries.keys()
    shared = sorted(in_both, key=lambda name: (-len(first.entries[name].items), name))
    if not shared:
        names = [first_names(sorted(run.entries)) for run in (first, second)]
        raise UsageError(
            f"the two runs have no task in common: A has {names[0]}, B has {names[1]}; "
            "compare runs of the same tasks."
        )
    if task is None:
        return shared
    if task not in shared:
        raise UsageError(
            f"--task {task}: not in both runs{suggestion(task, shared)}, "
            f"which share {first_names(shared)}; choose one."
        )
    return [task]


def shared_metrics(runs: Sequence[ScoredRun], name: str) -> list[str]:
    """The metrics of a task or group that all runs have, in the order of the first run.

    There must be at least one run, and all must have the task or group.
    """
    first_run, *further_runs = runs
    shared = list(first_run.entries[name].scores.metrics)
    for run in further_runs:
        metrics_of_run = run.entries[name].scores.metrics
        shared = [metric for metric in shared if metric in metrics_of_run]
    return shared


def _require_metric(metric: str, metrics_by_name: Mapping[str, Sequence[str]]) -> None:
    """Raise a `UsageError` unless a task or group has the metric."""
    metrics: dict[str, None] = {}
    for names in metrics_by_name.values():
        metrics.update(dict.fromkeys(names))
    if metric not in metrics:
        named = first_names(metrics, 12) or "none"
        raise UsageError(
            f"--metric {metric}: not in both runs{suggestion(metric, list(metrics))}, "
            f"which share {named}."
        )


def _worth_showing(
    metrics_by_name: Mapping[str, list[str]], first: ScoredRun, second: ScoredRun
) -> dict[str, list[str]]:
    """The metrics by task and group that apply to an item.

    A group of one task does not repeat that task's.
    """
    worth_showing: dict[str, list[str]] = {}
    for name, metrics in metrics_by_name.items():
        entries = first.entries[name], second.entries[name]
        members = {*entries[0].table.tasks, *entries[1].table.tasks}
        repeated: list[str] = []
        if len(members) == 1 and name not in members:
            repeated = metrics_by_name.get(members.pop(), [])
        worth_showing[name] = []
        for metric in metrics:
            applies = any(entry.scores.metrics[metric].samples for entry in entries)
            if applies and metric not in repeated:
                worth_showing[name].append(metric)
    return worth_showing


def compared_lines(first: Entry, second: Entry, metrics: Sequence[str]) -> Iterator[ComparisonLine]:
    """The lines of a task or group, before Holm's correction."""
    rows = shared_rows(first, second)
    clusters_here = np.array(first.clusters)[rows.here]
    clusters_there = np.array(second.clusters)[rows.there]
    shared_reasons = []
    if not np.array_equal(clusters_here, clusters_there):
        shared_reasons.append("items are in different clusters")
    if rows.differing:
        items = counted(rows.differing, "item")
        shared_reasons.append(f"the runs have other questions or gold answers of {items}")
    for metric in metrics:
        unlike = differences(first.signatures[metric], second.signatures[metric])
        yield _compared_line(first, second, metric, rows, [*unlike, *shared_reasons])


def _compared_line(
    first: Entry, second: Entry, metric: str, rows: SharedRows, unlike: Sequence[str]
) -> ComparisonLine:
    """One metric over the items in ``rows``; ``unlike`` says why it is not comparable."""
    all_first = first.statistics(metric)
    all_second = second.statistics(metric)
    shared_first = all_first[rows.here]
    shared_second = all_second[rows.there]
    in_both = ~(without_value(shared_first) | without_value(shared_second))
    with_value = _count_values(all_first) + _count_values(all_second)
    line = ComparisonLine(
        task=first.name,
        metric=metric,
        unit=unit_of(metric),
        unpaired=with_value - 2 * int(np.count_nonzero(in_both)),
        unlike=tuple(unlike),
        unknown_prompts=not unlike and has_unknown_prompts(first.signatures[metric]),
    )
    clusters = first.table.codes[rows.here]
    difference = compare_statistics(metric, shared_first, shared_second, clusters)
    if difference is None:
        return replace(line, reason=_why_no_difference(first, second, metric, rows))
    detectable = None
    if difference.standard_error:
        detectable = detectable_difference(difference.standard_error, difference.clusters)
    return replace(
        line,
        first=difference.first,
        second=difference.second,
        pair=pair_of("first", "second", metric, (shared_first, shared_second), difference),
        detectable=detectable,
        reason=difference.reason,
    )


def _count_values(table: Array) -> int:
    """The number of items with a value in a table of statistics."""
    return int(np.count_nonzero(~without_value(table)))


def _why_no_difference(first: Entry, second: Entry, metric: str, rows: SharedRows) -> str:
    """Why no difference in a metric is defined."""
    if not len(rows.here):
        return "the runs have no item in common"
    for side, entry in (("first", first), ("second", second)):
        score = entry.scores.metrics[metric]
        if score.value is None:
            return f"{side} run: {score.reason or 'no value'}"
    return "no item has a value from both runs"


def _corrected(lines: Sequence[ComparisonLine]) -> tuple[ComparisonLine, ...]:
    """The lines with p-values corrected over all of them."""
    pairs = iter(with_holm([line.pair for line in lines if line.pair is not None]))
    corrected = []
    for line in lines:
        corrected.append(line if line.pair is None else replace(line, pair=next(pairs)))
    return tuple(corrected)

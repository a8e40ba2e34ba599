"""Two runs on the same questions: the difference in every shared score, and its significance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from medtasks.core.errors import UsageError
from medtasks.core.schema import suggestion
from medtasks.core.text import (
    TextTable,
    counted,
    first_names,
    grouped_notes,
    p_text,
    signed_interval,
)
from medtasks.metrics.registry import unit_of
from medtasks.runs.signature import differences, has_unknown_prompts
from medtasks.scoring.comparisons import compare_statistics
from medtasks.scoring.item_table import without_value
from medtasks.stats.paired import detectable_difference

from ..schema.board import Pair, Unit
from ..verify.entries import Entry
from ..verify.scored_run import ScoredRun
from .pairs import pair_of, with_holm
from .shared_items import SharedRows, shared_rows

COLUMNS = (
    "task",
    "metric",
    "comparable",
    "A",
    "B",
    "A - B",
    "95 % interval",
    "p",
    "p (Holm)",
    "items",
    "clusters",
    "unpaired",
    "detectable",
)
_DIGITS = {"fraction": 3, "points": 1, "seconds": 2, "score": 3}
_UNKNOWN_PROMPTS = (
    "Both runs' responses were made elsewhere; "
    "nobody knows whether both models were asked the same."
)
_OVER = (
    "Scores are over the items with a value in both runs; "
    "intervals and p are from the cluster sign-flip test."
)
_DETECTABLE = (
    "detectable: the minimum detectable difference (80 % power); "
    "smaller ones are likely to be missed."
)


@dataclass(frozen=True)
class Line:
    """One metric of one task or group in two runs.

    ``first`` and ``second`` are the scores over the items with a value in both runs, None without
    any; ``pair`` has their difference, first - second. ``unpaired`` counts items with a value in
    only one run. ``detectable`` is the minimum detectable difference (80 % power at level 0.05).
    ``unlike`` says why the two scores are not comparable, ``reason`` why there is no test. With
    ``unknown_prompts``, the responses of both runs were made elsewhere, so it is unknown whether
    both models were asked the same.
    """

    task: str
    metric: str
    unit: Unit
    unpaired: int
    unlike: tuple[str, ...]
    first: float | None = None
    second: float | None = None
    pair: Pair | None = None
    detectable: float | None = None
    reason: str | None = None
    unknown_prompts: bool = False

    @property
    def comparable(self) -> str:
        """``no``, ``yes``, or ``yes*`` if that depends on prompts that nobody knows."""
        if self.unlike:
            return "no"
        return "yes*" if self.unknown_prompts else "yes"

    @property
    def is_tested(self) -> bool:
        return self.pair is not None and self.pair.p_value is not None


@dataclass(frozen=True)
class Comparison:
    """Two runs, named by their models' slugs.

    p-values are corrected over all lines that have one.
    """

    first: str
    second: str
    lines: tuple[Line, ...]

    @property
    def table(self) -> TextTable:
        """The lines as ``medtasks compare`` prints them; A is the first run."""
        rows = [_table_row(line) for line in self.lines]
        notes = [f"  {_OVER}"]
        tests = sum(line.is_tested for line in self.lines)
        if tests > 1:
            notes.append(f"  p (Holm) is corrected over the {tests:,} tests of this table.")
        if any(line.unknown_prompts and not line.unlike for line in self.lines):
            notes.append(f"  * {_UNKNOWN_PROMPTS}")
        notes.append(f"  {_DETECTABLE}")
        for kind in _line_notes(self.lines).values():
            notes += grouped_notes(kind)
        return TextTable(COLUMNS, rows, notes=notes)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _table_row(line: Line) -> tuple[str, ...]:
    """A line with its numbers as text."""
    pair, unit = line.pair, line.unit
    if pair is None:
        values = ("", "", "", "", "", "")
        items = clusters = "0"
    else:
        values = (
            signed_number(line.first, unit),
            signed_number(line.second, unit),
            signed_number(pair.difference, unit, "+"),
            signed_interval((pair.low, pair.high), _DIGITS[unit]),
            p_text(pair.p_value),
            p_text(pair.p_holm),
        )
        items, clusters = f"{pair.items:,}", f"{pair.clusters:,}"
    unpaired, detectable = f"{line.unpaired:,}", signed_number(line.detectable, unit)
    names = (line.task, line.metric, line.comparable)
    return (*names, *values, items, clusters, unpaired, detectable)


def _line_notes(lines: Sequence[Line]) -> dict[str, list[tuple[str, str]]]:
    """By kind, the notes on lines, each with its task and metric."""
    notes: dict[str, list[tuple[str, str]]] = {
        "no difference": [],
        "no interval": [],
        "warning": [],
        "unlike": [],
    }
    for line in lines:
        place = f"{line.task} {line.metric}"
        if line.pair is not None and line.pair.warning is not None:
            notes["warning"].append((f"warning: {line.pair.warning}", place))
        if line.reason is not None:
            kind = "no interval" if line.is_tested else "no difference"
            notes[kind].append((f"{kind}: {line.reason}", place))
        for reason in line.unlike:
            notes["unlike"].append((f"not comparable: {reason}", place))
    return notes


def signed_number(value: float | None, unit: str, sign: str = "") -> str:
    """The value with its unit's digits, and a plus sign if ``sign`` is ``+``; empty for None."""
    return "" if value is None else f"{value:{sign}.{_DIGITS[unit]}f}"


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
    metrics_of = {name: shared_metrics((first, second), name) for name in names}
    if metric is not None:
        _require_metric(metric, metrics_of)
    if task is None and metric is None:
        metrics_of = _worth_showing(metrics_of, first, second)
    lines: list[Line] = []
    for number, (name, metrics) in enumerate(metrics_of.items(), start=1):
        if metric is not None:
            metrics = [metric] if metric in metrics else []
        lines += compared_lines(first.entries[name], second.entries[name], metrics)
        if progress is not None:
            progress(number, len(metrics_of))
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
    """The metrics of a task or group that all runs have."""
    first, *others = (run.entries[name].scores.metrics for run in runs)
    return [metric for metric in first if all(metric in metrics for metrics in others)]


def _require_metric(metric: str, metrics_of: Mapping[str, Sequence[str]]) -> None:
    """Raise a `UsageError` unless a task or group has the metric."""
    metrics: dict[str, None] = {}
    for names in metrics_of.values():
        metrics.update(dict.fromkeys(names))
    if metric not in metrics:
        named = first_names(metrics, 12) or "none"
        raise UsageError(
            f"--metric {metric}: not in both runs{suggestion(metric, list(metrics))}, "
            f"which share {named}."
        )


def _worth_showing(
    metrics_of: Mapping[str, list[str]], first: ScoredRun, second: ScoredRun
) -> dict[str, list[str]]:
    """The metrics by task and group that apply to an item.

    A group of one task does not repeat that task's.
    """
    worth_showing: dict[str, list[str]] = {}
    for name, metrics in metrics_of.items():
        entries = first.entries[name], second.entries[name]
        members = {task for entry in entries for task in entry.table.tasks}
        repeated: list[str] = []
        if len(members) == 1 and name not in members:
            repeated = metrics_of.get(members.pop(), [])
        worth_showing[name] = []
        for metric in metrics:
            applies = any(entry.scores.metrics[metric].samples for entry in entries)
            if applies and metric not in repeated:
                worth_showing[name].append(metric)
    return worth_showing


def compared_lines(first: Entry, second: Entry, metrics: Sequence[str]) -> Iterator[Line]:
    """The lines of a task or group, before Holm's correction."""
    rows = shared_rows(first, second)
    clusters_here = np.array(first.clusters)[rows.here]
    clusters_there = np.array(second.clusters)[rows.there]
    shared_reasons = []
    if not np.array_equal(clusters_here, clusters_there):
        shared_reasons.append("items are in different clusters")
    if rows.others:
        items = counted(rows.others, "item")
        shared_reasons.append(f"the runs have other questions or gold answers of {items}")
    for metric in metrics:
        unlike = differences(first.signatures[metric], second.signatures[metric])
        yield _compared_line(first, second, metric, rows, [*unlike, *shared_reasons])


def _compared_line(
    first: Entry, second: Entry, metric: str, rows: SharedRows, unlike: Sequence[str]
) -> Line:
    """One metric over the items in ``rows``; ``unlike`` says why it is not comparable."""
    tables = first.statistics(metric), second.statistics(metric)
    here, there = tables[0][rows.here], tables[1][rows.there]
    valued = sum(int(np.count_nonzero(~without_value(table))) for table in tables)
    in_both = int(np.count_nonzero(~(without_value(here) | without_value(there))))
    line = Line(
        first.name,
        metric,
        unit_of(metric),
        valued - 2 * in_both,
        tuple(unlike),
        unknown_prompts=not unlike and has_unknown_prompts(first.signatures[metric]),
    )
    difference = compare_statistics(metric, here, there, first.table.codes[rows.here])
    if difference is None:
        return replace(line, reason=_why_no_difference(first, second, metric, rows))
    detectable = None
    if difference.standard_error:
        detectable = detectable_difference(difference.standard_error, difference.clusters)
    return replace(
        line,
        first=difference.first,
        second=difference.second,
        pair=pair_of("first", "second", metric, (here, there), difference),
        detectable=detectable,
        reason=difference.reason,
    )


def _why_no_difference(first: Entry, second: Entry, metric: str, rows: SharedRows) -> str:
    """Why no difference in a metric is defined."""
    if not len(rows.here):
        return "the runs have no item in common"
    for side, entry in (("first", first), ("second", second)):
        score = entry.scores.metrics[metric]
        if score.value is None:
            return f"{side} run: {score.reason or 'no value'}"
    return "no item has a value from both runs"


def _corrected(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines with p-values corrected over all of them."""
    pairs = iter(with_holm([line.pair for line in lines if line.pair is not None]))
    corrected = []
    for line in lines:
        corrected.append(line if line.pair is None else replace(line, pair=next(pairs)))
    return tuple(corrected)

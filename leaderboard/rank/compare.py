"""Two runs on the same questions: the difference in every shared score, and whether it exceeds
chance.

Several pairs of runs, such as base and tuned models, are compared over the tasks of a group: each
pair and task gives one difference, tuned - base, over the items with a value in both runs, and the
tests ask whether these differences lean to one side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from medtasks.catalog.spec import leaf_tasks, load_spec
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
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.runs.signature import differences, has_unknown_prompts
from medtasks.scoring.comparisons import compare_statistics
from medtasks.scoring.item_table import Mask, Rows, without_value
from medtasks.stats.paired import detectable_difference
from medtasks.stats.sign_flips import rounded_differences, signed_rank_p

from ..schema.board import Pair, Unit
from ..verify.entries import Entry
from ..verify.scored_run import ScoredRun
from .pairs import pair_of, with_holm

COLUMNS = ("task", "metric", "comparable", "A", "B", "A - B", "95 % interval", "p", "p (Holm)", "items", "clusters",
           "unpaired", "detectable")  # fmt: skip
Texts = npt.NDArray[np.str_]
_DIGITS = {"fraction": 3, "points": 1, "seconds": 2, "score": 3}
_UNKNOWN_PROMPTS = "Both runs' responses were made elsewhere; nobody knows whether both models were asked the same."
_OVER = "Scores are over the items with a value in both runs; intervals and p are from the cluster sign-flip test."


@dataclass(frozen=True)
class Line:
    """One metric of one task or group: ``first`` and ``second`` are the scores over the items with
    a value in both runs, None without any; ``pair`` has their difference, first - second.

    ``unpaired`` counts items with a value in only one run. ``detectable`` is the minimum detectable
    difference (80 % power at level 0.05). ``unlike`` says why the two scores are not comparable,
    ``reason`` why there is no test. With ``unknown_prompts``, the responses of both runs were made
    elsewhere: whether both models were asked the same, nobody knows.
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


@dataclass(frozen=True)
class Comparison:
    """Two runs, named by their models' slugs; p-values are corrected over all lines that have
    one.
    """

    first: str
    second: str
    lines: tuple[Line, ...]

    @property
    def table(self) -> TextTable:
        """The lines as ``medtasks compare`` prints them; A is the first run."""
        rows = []
        texts: dict[str, list[tuple[str, str]]] = {
            "no difference": [],
            "no interval": [],
            "warning": [],
            "unlike": [],
        }
        for line in self.lines:
            pair, unit, place = line.pair, line.unit, f"{line.task} {line.metric}"
            values, items, clusters = [""] * 6, "0", "0"
            if pair is not None:
                ends = signed_interval((pair.low, pair.high), _DIGITS[unit])
                difference = signed_number(pair.difference, unit, "+")
                values = [
                    signed_number(line.first, unit),
                    signed_number(line.second, unit),
                    difference,
                    ends,
                ]
                values += [p_text(pair.p_value), p_text(pair.p_holm)]
                items, clusters = f"{pair.items:,}", f"{pair.clusters:,}"
                if pair.warning is not None:
                    texts["warning"].append((f"warning: {pair.warning}", place))
            counts = [items, clusters, f"{line.unpaired:,}", signed_number(line.detectable, unit)]
            rows.append((line.task, line.metric, line.comparable, *values, *counts))
            if line.reason is not None:
                kind = "no difference" if pair is None or pair.p_value is None else "no interval"
                texts[kind].append((f"{kind}: {line.reason}", place))
            texts["unlike"] += [(f"not comparable: {reason}", place) for reason in line.unlike]
        tests = sum(line.pair is not None and line.pair.p_value is not None for line in self.lines)
        holm = (
            [f"  p (Holm) is corrected over the {tests:,} tests of this table."]
            if tests > 1
            else []
        )
        unknown = any(line.comparable == "yes*" for line in self.lines)
        notes = [
            f"  {_OVER}",
            *holm,
            *([f"  * {_UNKNOWN_PROMPTS}"] if unknown else []),
            "  detectable: the minimum detectable difference (80 % power); smaller ones are likely to be missed.",
            *(note for kind in texts.values() for note in grouped_notes(kind)),
        ]
        return TextTable(COLUMNS, rows, notes=notes)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


@dataclass(frozen=True)
class TaskDifference:
    """``tuned`` - ``base`` (slugs of models) in one task; ``difference`` is None for the ``reason``
    given. ``unlike`` says why the two scores are not comparable.
    """

    base: str
    tuned: str
    task: str
    difference: float | None
    reason: str | None
    unlike: tuple[str, ...]


@dataclass(frozen=True)
class LeaningTest:
    """Whether the differences of all pairs in the tasks of a group, in one metric, lean to one
    side.

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
    """The comparison of two runs item by item in every score that both have, or in one ``task`` or
    ``metric``.

    Unless they are asked for by name, metrics that apply to no item of either run are left out, and
    those of a group that its only task has, too. `UsageError` if the runs have no score in common.
    """
    both = first.entries.keys() & second.entries.keys()
    shared = sorted(
        both, key=lambda name: (-len(first.entries[name].items), name)
    )  # those with most items first
    if not shared:
        known = [first_names(sorted(run.entries)) for run in (first, second)]
        raise UsageError(
            f"the two runs have no task in common: A has {known[0]}, B has {known[1]}; compare runs of the same tasks."
        )
    if task is not None and task not in shared:
        raise UsageError(
            f"--task {task}: not in both runs{suggestion(task, shared)}, which share {first_names(shared)}; choose one."
        )
    shared = shared if task is None else [task]
    held = {name: _metrics_of((first, second), name) for name in shared}
    metrics = list(dict.fromkeys(one for several in held.values() for one in several))
    if metric is not None and metric not in metrics:
        some = first_names(metrics, 12) or "none"
        raise UsageError(
            f"--metric {metric}: not in both runs{suggestion(metric, metrics)}, which share {some}."
        )
    if task is None and metric is None:
        held = _worth_showing(held, first, second)
    lines: list[Line] = []
    for number, (name, several) in enumerate(held.items(), start=1):
        chosen = [one for one in several if metric in (None, one)]
        lines += _lines(first.entries[name], second.entries[name], chosen)
        if progress is not None:
            progress(number, len(held))
    corrected = iter(with_holm([line.pair for line in lines if line.pair is not None]))
    lines = [line if line.pair is None else replace(line, pair=next(corrected)) for line in lines]
    return Comparison(first=first.model, second=second.model, lines=tuple(lines))


def _metrics_of(runs: Sequence[ScoredRun], name: str) -> list[str]:
    """The metrics of a task or group that all runs have."""
    first, *others = (run.entries[name].scores.metrics for run in runs)
    return [metric for metric in first if all(metric in other for other in others)]


def _worth_showing(
    held: Mapping[str, list[str]], first: ScoredRun, second: ScoredRun
) -> dict[str, list[str]]:
    """The metrics by task and group that apply to an item, each once: a group of one task repeats
    that task's.
    """
    shown: dict[str, list[str]] = {}
    for name, metrics in held.items():
        entries = first.entries[name], second.entries[name]
        members = {task for entry in entries for task in entry.table.tasks}
        repeated = (
            held.get(next(iter(members)), []) if len(members) == 1 and members != {name} else []
        )
        shown[name] = [
            metric
            for metric in metrics
            if metric not in repeated
            and any(entry.scores.metrics[metric].samples for entry in entries)
        ]
    return shown


@dataclass(frozen=True)
class SharedRows:
    """The rows of the items that two entries share; ``others`` counts items with other questions or
    gold answers.
    """

    here: Rows
    there: Rows
    others: int


def shared_rows(first: Entry, second: Entry) -> SharedRows:
    """The items of both that have the same question; none if the entries claim the same data and
    disagree.
    """
    _, here, there = np.intersect1d(
        first.items, second.items, assume_unique=True, return_indices=True
    )
    same_question = _asked_the_same(
        np.array(first.questions)[here], np.array(second.questions)[there]
    )
    others = int(np.count_nonzero(~same_question))
    if (
        others and first.fingerprint == second.fingerprint
    ):  # the items on which they agree are a choice of one of them
        same_question[:] = False
    return SharedRows(here[same_question], there[same_question], others)


def _lines(first: Entry, second: Entry, metrics: Sequence[str]) -> Iterator[Line]:
    rows = shared_rows(first, second)
    here, there, others = rows.here, rows.there, rows.others
    same_clusters = np.array_equal(np.array(first.clusters)[here], np.array(second.clusters)[there])
    for metric in metrics:
        unlike = differences(first.signatures[metric], second.signatures[metric])
        unlike += [] if same_clusters else ["items are in different clusters"]
        unlike += (
            [f"the runs have other questions or gold answers of {counted(others, 'item')}"]
            if others
            else []
        )
        tables = first.statistics(metric), second.statistics(metric)
        one, two = tables[0][here], tables[1][there]
        valued = sum(int(np.count_nonzero(~without_value(table))) for table in tables)
        in_both = int(np.count_nonzero(~(without_value(one) | without_value(two))))
        line = Line(
            first.name,
            metric,
            unit_of(metric),
            valued - 2 * in_both,
            tuple(unlike),
            unknown_prompts=not unlike and has_unknown_prompts(first.signatures[metric]),
        )
        found = compare_statistics(metric, one, two, first.table.codes[here])
        if found is None:
            sides = (
                ("first", first.scores.metrics[metric]),
                ("second", second.scores.metrics[metric]),
            )
            why = [
                f"{side} run: {score.reason or 'no value'}"
                for side, score in sides
                if score.value is None
            ]
            why = (
                [*why, "no item has a value from both runs"]
                if len(here)
                else ["the runs have no item in common"]
            )
            yield replace(line, reason=why[0])
            continue
        pair, error = pair_of("first", "second", metric, (one, two), found), found.standard_error
        least = detectable_difference(error, found.clusters) if error else None
        yield replace(
            line,
            first=found.first,
            second=found.second,
            pair=pair,
            detectable=least,
            reason=found.reason,
        )


def _asked_the_same(first: Texts, second: Texts) -> Mask:
    """By item whether both runs have the same question, as far as they have their own documents."""
    same: Mask = (first == second) | (first == "") | (second == "")
    return same


def compare_pairs(
    pairs: Sequence[tuple[ScoredRun, ScoredRun]],
    *,
    group: str | None = None,
    metric: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[LeaningTest]:
    """The tests of every ``group`` and ``metric`` that all runs share, over ``pairs`` of a base and
    a tuned run; `UsageError` if the runs share no group of several tasks with a metric.
    """
    from scipy.stats import binomtest  # slow to import, and few comparisons are of several pairs

    runs = [run for pair in pairs for run in pair]
    shared = set.intersection(*({*run.entries} for run in runs))
    places: list[tuple[str, str, list[str]]] = []
    for name in sorted(shared) if group is None else [group]:
        tasks = [task for task in leaf_tasks(name) if task in shared]
        if name in shared and load_spec(name).kind == "group" and len(tasks) > 1:
            known = [_metrics_of(runs, task) for task in tasks]
            in_all = [
                one for one in known[0] if metric in (None, one) and all(one in of for of in known)
            ]
            places += [(name, one, tasks) for one in in_all]
    if not places:
        asked = " ".join(
            filter(None, (group and f"--task {group}", metric and f"--metric {metric}"))
        )
        raise UsageError(
            f"{asked or 'the runs'}: the runs share {first_names(sorted(shared), 12) or 'no task'}, expected a group "
            "of several tasks with a metric in common; give runs of one."
        )
    tests: list[LeaningTest] = []
    for name, one, tasks in places:
        differences: list[TaskDifference] = []
        for base, tuned in pairs:
            for task in tasks:
                (line,) = _lines(tuned.entries[task], base.entries[task], [one])
                difference, reason = (
                    (None, line.reason) if line.pair is None else (line.pair.difference, None)
                )
                differences.append(
                    TaskDifference(base.model, tuned.model, task, difference, reason, line.unlike)
                )
            if progress is not None:
                progress(
                    len(tests) * len(pairs) + len(differences) // len(tasks),
                    len(places) * len(pairs),
                )
        sign = 1 if get_metric(one).higher_is_better else -1
        values = [task.difference for task in differences if task.difference is not None]
        leaning = rounded_differences(sign * np.array(values, dtype=np.float64))
        leaning = leaning[leaning != 0]
        better = int(np.count_nonzero(leaning > 0))
        sign_p = float(binomtest(better, len(leaning)).pvalue) if len(leaning) else None
        wilcoxon_p = signed_rank_p(leaning) if len(leaning) else None
        counts = (better, len(leaning) - better)
        least_p = min(1.0, 2.0 ** (1 - len(leaning)))
        tests.append(
            LeaningTest(
                name, one, unit_of(one), tuple(differences), *counts, sign_p, wilcoxon_p, least_p
            )
        )
    return tests

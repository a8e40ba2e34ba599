"""Scores of a set of samples: pooled, with cluster-bootstrap intervals, breakdowns and diagnostics.

Tasks, groups and breakdowns are scored by the same function, from rows of one table: a group's score is computed from
the summed statistics of all its items, never averaged over its tasks. An item is a sample, or the rounds of a stream.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

import numpy as np

from medtasks.catalog.benchmark import FAILED, Benchmark
from medtasks.core.errors import MedtasksError
from medtasks.metrics.aggregate import check_finite, segment_sums, totals
from medtasks.metrics.base import Array, MeanMetric, Metric
from medtasks.metrics.confidence import (
    BIN_OF,
    BINS,
    ECE,
    GIVEN,
    PERCENT,
    accuracy_at,
    cases,
    reasons,
)
from medtasks.metrics.registry import get_metric
from medtasks.metrics.variants import POSITIONS, PREFERENCE, preference_of_letter
from medtasks.runs.samples import Sample
from medtasks.runs.scores import (
    COVERAGE,
    Letters,
    MetricScore,
    Reliability,
    ReliabilityBin,
    Repeats,
    RotatedLetters,
    Scores,
)
from medtasks.runs.table import Column, ItemTable, Mask, Rows, item_table, stacked
from medtasks.stats.bootstrap import Interval, Score, cluster_totals, joint_intervals
from medtasks.stats.student import student_interval

RESAMPLES = 1000
SEED = 0


def score_samples(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    pooled: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    threshold: float = COVERAGE,
) -> Scores:
    """Scores of ``samples`` in any order, overall and for each named breakdown of ``benchmark``.

    ``pooled`` names further metrics that only make sense over several tasks; the rest is as in :func:`score_tables`.

    Raises:
        MedtasksError: there are no samples, the samples of one task have different metrics, or a breakdown is unknown.
    """
    part = Scored(item_table(samples, benchmark, breakdowns, pooled), benchmark, tuple(breakdowns))
    return score_tables({"": part}, resamples=resamples, threshold=threshold)[""]


@dataclass(frozen=True)
class Scored:
    """A table to score, and the breakdowns to include."""

    table: ItemTable
    benchmark: Benchmark
    breakdowns: tuple[str, ...] = ()


def score_tables(
    entries: Mapping[str, Scored], *, resamples: int = RESAMPLES, threshold: float = COVERAGE
) -> dict[str, Scores]:
    """Scores of each entry, overall and by breakdown.

    Intervals are 95 % percentile intervals of a cluster bootstrap over images, patients or videos
    (:func:`joint_intervals`, seed 0); entries, metrics and groups with the same number of clusters share
    one set of draws. A judged score is marked incomplete if the share of items with a verdict is below ``threshold``;
    one that still awaits its judge has no value.
    """
    plan = _Plan(threshold)
    opened = {name: plan.opened(one) for name, one in entries.items()}
    drawn = joint_intervals(plan.sums, resamples=resamples, seed=SEED)
    return {name: one.scores(drawn) for name, one in opened.items()}


_MEAN = MeanMetric()

_OpenScore = tuple[dict[str, Any], int | None]
"""The fields of a `MetricScore` but its interval, and the number of that interval, if it has a value."""


@dataclass(frozen=True)
class _Opened:
    """The scores of a table but for their intervals: overall (part 0), and for each group of each breakdown.

    ``rows`` are those of each part, ``keys`` the breakdown and group of each part but the first. ``letters`` and
    ``reliability`` have the number of their first interval.
    """

    one: Scored
    keys: list[tuple[str, str]]
    rows: list[Rows]
    metrics: dict[str, list[_OpenScore]]
    letters: list[tuple[RotatedLetters | Letters | None, int]]
    reliability: tuple[Reliability | None, int]

    def scores(self, drawn: Sequence[Interval]) -> Scores:
        """The scores with their intervals."""
        breakdowns: dict[str, dict[str, Scores]] = {name: {} for name in self.one.breakdowns}
        for number, (name, key) in enumerate(self.keys, start=1):
            breakdowns[name][key] = Scores(**self._part(number, drawn))
        reliability = _reliable(*self.reliability, drawn)
        return Scores(**self._part(0, drawn), breakdowns=breakdowns, reliability=reliability)

    def _part(self, number: int, drawn: Sequence[Interval]) -> dict[str, Any]:
        table, rows = self.one.table, self.rows[number]
        listed, complete = rows.tolist(), int(np.count_nonzero(table.complete[rows]))
        return {
            "samples": sum(len(table.samples[row]) for row in listed),
            "items": complete,
            "clusters": len(np.unique(table.codes[rows])),
            "status": _status_counts(map(table.statuses.__getitem__, listed)),
            "metrics": {name: _with_interval(*scores[number], drawn) for name, scores in self.metrics.items()},
            "incomplete": len(rows) - complete,
            "letters": _lettered(*self.letters[number], drawn),
        }


def _with_interval(fields: dict[str, Any], place: int | None, drawn: Sequence[Interval]) -> MetricScore:
    if place is None:
        return MetricScore(**fields, interval=None)
    found = drawn[place]
    ends = None if found.low is None or found.high is None else (found.low, found.high)
    return MetricScore(**{**fields, "interval": ends, "reason": found.reason})


def _lettered(letters: Letters | None, first: int, drawn: Sequence[Interval]) -> Letters | None:
    if not isinstance(letters, RotatedLetters):
        return letters
    preference = {
        name: (value[0], drawn[place].low, drawn[place].high)
        for place, (name, value) in enumerate(letters.preference.items(), start=first)
    }
    return letters.model_copy(update={"preference": preference})


def _reliable(found: Reliability | None, first: int, drawn: Sequence[Interval]) -> Reliability | None:
    if found is None:
        return None
    ends = [(drawn[place], one) for place, one in enumerate(found.bins, start=first)]
    bins = [one.model_copy(update={"interval": None if end.low is None else (end.low, end.high)}) for end, one in ends]
    return found.model_copy(update={"bins": tuple(bins)})


@dataclass(frozen=True)
class _Parts:
    """Rows of a table in parts, which may overlap: ``rows`` of one part after the other, and the ``part`` of each."""

    rows: Rows
    part: Rows
    count: int

    def counts(self, chosen: Mask) -> list[int]:
        """How many of the ``chosen`` rows each part has."""
        found: list[int] = np.bincount(self.part[chosen], minlength=self.count).tolist()
        return found

    def among(self, numbers: Iterable[int]) -> Mask:
        """Which rows belong to one of these parts."""
        chosen = np.zeros(self.count, dtype=bool)
        chosen[[*numbers]] = True
        found: Mask = chosen[self.part]
        return found


class _Plan:
    """Scores tables; ``sums`` are the cluster totals of each score with a value, for its interval."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self.sums: list[tuple[Array, Score]] = []

    def opened(self, one: Scored) -> _Opened:
        """The scores of a table but for their intervals."""
        table, benchmark = one.table, one.benchmark
        groups = {name: table.rows_by_group(benchmark, name) for name in one.breakdowns}
        keys = [(name, key) for name, found in groups.items() for key in found]
        rows = [np.arange(len(table.items)), *(groups[name][key] for name, key in keys)]
        in_parts = {number: key for number, (name, key) in enumerate(keys, start=1) if name == benchmark.parts}
        columns = {name: table.columns[name] for name in table.metrics}
        scored = [one_part[table.complete[one_part]] for one_part in rows]
        return _Opened(
            one,
            keys,
            rows,
            metrics={name: self._metric(name, column, scored, in_parts, one) for name, column in columns.items()},
            letters=[self._letters(table, part, benchmark, columns) for part in scored],
            reliability=self._reliability(table, columns),
        )

    def _metric(
        self, name: str, column: Column, rows: Sequence[Rows], in_parts: Mapping[int, str], one: Scored
    ) -> list[_OpenScore]:
        """The scores of one metric for all parts of a table, whose ``rows`` are given; those of ``in_parts`` are groups
        of `Benchmark.parts`."""
        whole = replace(column, parts={})
        reduced = {number: column.part(key) for number, key in in_parts.items() if key in column.parts}
        plain = [number for number in range(len(rows)) if number not in reduced]
        found: dict[int, _OpenScore] = {}
        for numbers in filter(None, (plain, [*reduced])):
            part = np.repeat(np.arange(len(numbers)), [len(rows[number]) for number in numbers])
            parts = _Parts(np.concatenate([rows[number] for number in numbers]), part, len(numbers))
            if numbers is plain:
                taken = whole.take(parts.rows)
            else:
                taken = stacked([reduced[number].take(rows[number]) for number in numbers])
            found |= zip(numbers, self._scores(name, taken, parts, one), strict=True)
        return [found[number] for number in range(len(rows))]

    def _scores(self, name: str, column: Column, parts: _Parts, one: Scored) -> list[_OpenScore]:
        """The score of each part, in one call of the metric; ``column`` has the rows of ``parts``."""
        metric = get_metric(name)
        scores = _unscored(metric, column, parts, self._threshold)
        valued = [number for number, score in enumerate(scores) if score["reason"] is None]
        known = column.applies & column.known & parts.among(valued)
        values, sums = _values(metric, column.statistics[known], parts.part[known], one.table.codes[parts.rows[known]])
        repeats = _repeats(metric, column, parts, valued)
        options = one.table.options[parts.rows[known]]
        chances = _chances(options, parts.part[known], parts.count) if name == "accuracy" else [None] * parts.count
        places: list[int | None] = [None] * parts.count
        for number, value, table in zip(valued, values, sums, strict=True):
            if math.isnan(value):
                scores[number]["reason"] = "it is undefined for so few clusters"
                continue
            places[number] = len(self.sums)
            self.sums.append((table, metric.score))
            chance = chances[number]
            scores[number] |= {
                "value": value,
                "chance": chance,
                "margin_over_chance": None if chance is None else value - chance,
                "repeats": repeats.get(number),
            }
        return [*zip(scores, places, strict=True)]

    def _letters(
        self, table: ItemTable, rows: Rows, benchmark: Benchmark, columns: Mapping[str, Column]
    ) -> tuple[RotatedLetters | Letters | None, int]:
        first = len(self.sums)
        if PREFERENCE not in columns:
            return letter_counts(table, rows, benchmark, columns.get("accuracy")), first
        counts, sums = rotated_letter_counts(table, rows, benchmark, columns[PREFERENCE])
        self.sums += [(one, _MEAN.score) for one in sums]
        return counts, first

    def _reliability(self, table: ItemTable, columns: Mapping[str, Column]) -> tuple[Reliability | None, int]:
        """Accuracy by confidence; None without any confidence."""
        first = len(self.sums)
        column, given = columns.get(ECE), columns.get(GIVEN)
        if column is None or given is None or not (column.known & table.complete).any():
            return None, first
        rows = np.flatnonzero(column.known & table.complete)
        counts, right = cases(column.statistics[rows])
        share, bins = _MEAN.score, []
        for place in range(BINS):
            chosen = place == BIN_OF
            pairs = np.stack([right[:, chosen].sum(axis=1), counts[:, chosen].sum(axis=1)], axis=-1)
            if answers := int(pairs[:, 1].sum()):
                stated = float((counts[:, chosen] @ PERCENT[chosen]).sum()) / 100 / answers
                accuracy = float(share(totals(pairs)))
                low, high = place / BINS, (place + 1) / BINS
                bins.append(ReliabilityBin(low=low, high=high, answers=answers, confidence=stated, accuracy=accuracy))
                self.sums.append((cluster_totals(pairs, table.codes[rows]), share))
        every = totals(column.statistics[rows])
        curve = tuple(float(accuracy_at(every, tenths / 10)) for tenths in range(1, 11))
        known = np.flatnonzero(given.known & table.complete)
        without = reasons(totals(given.statistics[known]).tolist())
        return Reliability(without=without, bins=tuple(bins), curve=curve), first


def _status_counts(statuses: Iterable[tuple[str, ...]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for kinds, items in Counter(statuses).items():  # few items differ in this
        for status in kinds:
            counts[status] += items
    return dict(sorted(counts.items()))


def _unscored(metric: Metric, column: Column, parts: _Parts, threshold: float) -> list[dict[str, Any]]:
    """The fields of each part's `MetricScore` without value and interval; ``reason`` is set if there is no value."""
    signature, applies = metric.signature, column.applies
    masks = (column.pending, column.awaiting, column.known, column.failed)
    counts = [parts.counts(applies), *(parts.counts(applies & mask) for mask in masks)]
    judges: list[list[str]] = [[] for _ in range(parts.count)]
    if column.judge is not None:
        judges = [column.judges_of(np.flatnonzero(applies & (parts.part == number))) for number in range(parts.count)]
    scores = []
    unavailable = functools.cache(metric.unavailable)  # looks for files
    for by, (count, pending, awaiting, known, failed) in zip(judges, zip(*counts, strict=True), strict=True):
        answered = count - failed
        reason = _reason(unavailable, count, answered, pending, awaiting, known, threshold)
        scores.append(
            {
                "value": None,
                "samples": count,
                "signature": "|".join([signature, *(f"judge:{judge}" for judge in by)]),
                "reason": reason,
                "answered": answered if failed else None,
                "judged": known if pending or by else None,
                "incomplete": reason is None and known < threshold * count,
            }
        )
    ranged = [n for n, one in enumerate(scores) if one["answered"] is not None or one["judged"] is not None]
    for number, ends in _bounds(metric, column, parts, ranged).items():
        scores[number]["bounds"] = ends
    return scores


def _reason(
    unavailable: Callable[[], str | None],
    count: int,
    answered: int,
    pending: int,
    awaiting: int,
    known: int,
    threshold: float,
) -> str | None:
    """Why so many items give no value; None if they do."""
    absent = answered - pending - known
    if not count:
        return "it applies to no item here"
    if not answered:
        return f"none of {count} items is answered"
    if absent:
        reason = unavailable() or "the run that made these samples could not compute it"
        return f"{absent} of {answered} samples lack it: {reason}" if absent < answered else reason
    if awaiting and known < threshold * answered:
        return f"{awaiting} of {count} items await a judge"
    return None if known else f"none of {count} items has a verdict"


def _values(metric: Metric, statistics: Array, part: Rows, clusters: Rows) -> tuple[list[float], list[Array]]:
    """The score and the cluster totals of each part that occurs in ``part``, which gives the part of each row."""
    if not len(part):
        return [], []
    check_finite(statistics)
    order = np.lexsort((clusters, part))
    statistics, part, clusters = statistics[order], part[order], clusters[order]
    begins = np.flatnonzero((np.diff(part, prepend=-1) != 0) | (np.diff(clusters, prepend=-1) != 0))
    sums = segment_sums(statistics, begins)
    firsts = np.flatnonzero(np.diff(part[begins], prepend=-1))
    return _scores(metric, _part_totals(statistics, part)).tolist(), np.split(sums, firsts[1:])


def _chances(options: Rows, part: Rows, parts: int) -> list[float | None]:
    """The accuracy of uniform guessing at the items of each part, whose numbers of ``options`` are given: the mean of
    1/options; None for a part with an item that cannot be guessed."""
    found: list[float | None] = [None] * parts
    numbers, codes = np.unique(options, return_inverse=True)
    counts = np.bincount(part * len(numbers) + codes, minlength=parts * len(numbers)).reshape(parts, len(numbers))
    for place in np.flatnonzero(counts.any(axis=1)).tolist():
        times = {number: count for number, count in zip(numbers.tolist(), counts[place].tolist(), strict=True) if count}
        if 0 not in times:  # one number of options is divided once, so that 1/5 is not 0.2 with an error of rounding
            items = sum(times.values())
            found[place] = 1 / min(times) if len(times) == 1 else math.fsum(c / n for n, c in times.items()) / items
    return found


def _scores(metric: Metric, totals: Array) -> Array:
    """The metric's score of each row of ``totals``.

    Raises:
        MedtasksError: `score` does not return one number a row.
    """
    scores = np.asarray(metric.score(totals))
    if scores.shape != totals.shape[:-1]:
        raise MedtasksError(
            f"metric {metric.name}: `score` returns shape {scores.shape} for sums of shape {totals.shape}, expected "
            f"{totals.shape[:-1]}; make it work on the last axis."
        )
    return scores


def _part_totals(statistics: Array, part: Rows) -> Array:
    return segment_sums(statistics, np.flatnonzero(np.diff(part, prepend=-1)))


def _repeats(metric: Metric, column: Column, parts: _Parts, valued: Sequence[int]) -> dict[int, Repeats]:
    """The spread over repeats of each part; empty unless all items have the same number, and more than one."""
    if column.repeats is None or not valued:
        return {}
    rows = column.applies & parts.among(valued)
    runs = column.repeats[rows]
    statistics = runs.reshape(len(runs), -1)
    check_finite(statistics)
    scores = _scores(metric, _part_totals(statistics, parts.part[rows]).reshape(len(valued), *runs.shape[1:])).tolist()
    return {
        number: Repeats.model_validate({"values": values, **student_interval(values)})
        for number, values in zip(valued, scores, strict=True)
    }


def _bounds(
    metric: Metric, column: Column, parts: _Parts, ranged: Sequence[int]
) -> dict[int, tuple[float, float] | None]:
    """The scores of parts with all open items wrong, and with all of them right; None if an item has no range."""
    found: dict[int, tuple[float, float] | None] = dict.fromkeys(ranged)
    if not ranged:
        return found
    rows = np.flatnonzero(column.applies & parts.among(ranged))
    low, high = column.bounds(rows)
    unknown = np.isnan(low).any(axis=1) | np.isnan(high).any(axis=1)
    ranges = sorted({*parts.part[rows].tolist()} - {*parts.part[rows[unknown]].tolist()})
    inside = parts.among(ranges)[rows]
    sides = (_scores(metric, _part_totals(side[inside], parts.part[rows[inside]])).tolist() for side in (low, high))
    return found | {number: (worst, best) for number, worst, best in zip(ranges, *sides, strict=True)}


def letter_counts(table: ItemTable, rows: Rows, benchmark: Benchmark, accuracy: Column | None) -> Letters | None:
    """Letter counts of the multiple-choice items; None if there are none."""
    if not benchmark.options or accuracy is None:
        return None
    gold: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    wrong = missed = 0
    null = benchmark.null_option
    found = Counter(map(table.answers.__getitem__, rows[accuracy.present[rows]].tolist()))
    for (target, letter, status), count in found.items():
        if status != FAILED:
            gold[target] += count
            chosen[letter if status == "ok" else f"[{status}]"] += count
            wrong += count * (letter == null and target != null)
            missed += count * (status == "ok" and letter != null and target == null)
    if not gold:
        return None
    return Letters(
        gold={letter: gold[letter] for letter in benchmark.options},
        chosen={
            **{letter: chosen[letter] for letter in benchmark.options},
            **{key: count for key, count in sorted(chosen.items()) if key not in benchmark.options},
        },
        null_chosen_when_wrong=None if null is None else wrong,
        null_missed_when_right=None if null is None else missed,
    )


def rotated_letter_counts(
    table: ItemTable, rows: Rows, benchmark: Benchmark, column: Column
) -> tuple[RotatedLetters | None, list[Array]]:
    """Letter counts of rotated questions, also of those without a selected option; None without a response.

    The second value has the cluster totals of each letter's preference, a mean, for its interval.
    """
    answered = [table.statuses[row] for row in rows.tolist() if FAILED not in table.statuses[row]]
    statuses = Counter(status for each in answered for status in each if status != "ok")
    if not answered:
        return None, []
    rows = rows[column.present[rows] & column.known[rows]]
    statistics, share = column.statistics[rows], MeanMetric().score
    chosen, shown, gold = totals(statistics).reshape(3, POSITIONS).tolist()
    names = {place: name for place, name in enumerate(benchmark.options or ascii_uppercase) if shown[place]}
    letters = {name: preference_of_letter(statistics, place) for place, name in names.items()}
    counts = RotatedLetters(
        gold={name: int(gold[place]) for place, name in names.items()},
        chosen={
            **{name: int(chosen[place]) for place, name in names.items()},
            **{f"[{status}]": count for status, count in sorted(statuses.items())},
        },
        preference={name: (float(share(totals(one))), None, None) for name, one in letters.items()},
    )
    return counts, [cluster_totals(one, table.codes[rows]) for one in letters.values()]

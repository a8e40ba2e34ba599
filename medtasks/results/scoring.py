"""Scores of a set of samples: pooled, with cluster-bootstrap intervals, breakdowns and diagnostics.

Tasks, groups and breakdowns are scored by the same function, from rows of one table: a group's score is computed from
the summed statistics of all its items, never averaged over its tasks. An item is a sample, or the rounds of a stream.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from medtasks.benchmarks.base import Benchmark
from medtasks.metrics import Metric, get_metric, totals
from medtasks.metrics.base import Array, MeanMetric
from medtasks.metrics.confidence import (
    BIN_OF,
    BINS,
    PERCENT,
    CalibrationError,
    ConfidenceGiven,
    accuracy_at,
    cases,
    reasons,
)
from medtasks.metrics.option_order import LetterPreference
from medtasks.results.column import Column, Rows
from medtasks.results.letters import letter_counts, rotated_letter_counts
from medtasks.results.samples import Sample
from medtasks.results.scores import (
    COVERAGE,
    Letters,
    MetricScore,
    Reliability,
    ReliabilityBin,
    Repeats,
    RotatedLetters,
    Scores,
)
from medtasks.results.table import ItemTable, item_table
from medtasks.stats import cluster_totals, joint_intervals, student_interval
from medtasks.stats.bootstrap import Score

RESAMPLES = 1000
CONFIDENCE = 0.95
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
    (:func:`medtasks.stats.joint_intervals`, seed 0); entries, metrics and groups with the same number of clusters share
    one set of draws. A judged score is marked incomplete if the share of items with a verdict is below ``threshold``;
    one that still awaits its judge has no value.
    """
    plan = _Plan(threshold)
    made = {name: plan.scores(one) for name, one in entries.items()}
    return plan.with_intervals(made, resamples)


class _Plan:
    """Draws all intervals together at the end, from ``_sums``, the cluster totals of each score with a value."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._sums: list[tuple[Array, Score]] = []

    def scores(self, one: Scored) -> Scores:
        table, benchmark = one.table, one.benchmark
        columns = {name: table.columns[name] for name in table.metrics}
        every = np.arange(len(table.items))
        whole = self._part(one, every, columns)
        whole = whole.model_copy(update={"reliability": self._reliability(table, columns)})
        breakdowns = {
            breakdown: {
                key: self._part(one, rows, _of_part(columns, key) if breakdown == benchmark.parts else columns)
                for key, rows in table.rows_by_group(benchmark, breakdown).items()
            }
            for breakdown in one.breakdowns
        }
        return whole.model_copy(update={"breakdowns": breakdowns})

    def _part(self, one: Scored, rows: Rows, columns: Mapping[str, Column]) -> Scores:
        """Scores of some rows of the table, from the columns that apply to them."""
        table = one.table
        whole = rows[table.complete[rows]]
        listed = rows.tolist()
        return Scores(
            samples=sum(len(table.samples[row]) for row in listed),
            items=len(whole),
            clusters=len(np.unique(table.codes[rows])),
            status=_status_counts(map(table.statuses.__getitem__, listed)),
            metrics={
                name: self._score(name, column, table.codes, whole, one.benchmark) for name, column in columns.items()
            },
            incomplete=len(rows) - len(whole),
            letters=self._letters(table, whole, one.benchmark, columns),
        )

    def _letters(
        self, table: ItemTable, rows: Rows, benchmark: Benchmark, columns: Mapping[str, Column]
    ) -> RotatedLetters | Letters | None:
        if LetterPreference.name not in columns:
            return letter_counts(table, rows, benchmark, columns.get("accuracy"))
        counts, sums = rotated_letter_counts(table, rows, benchmark, columns[LetterPreference.name])
        self._sums += [(one, MeanMetric().score) for one in sums]
        return counts

    def _reliability(self, table: ItemTable, columns: Mapping[str, Column]) -> Reliability | None:
        """Accuracy by confidence; None without any confidence."""
        column, given = columns.get(CalibrationError.name), columns.get(ConfidenceGiven.name)
        if column is None or given is None or not (column.known & table.complete).any():
            return None
        rows = np.flatnonzero(column.known & table.complete)
        counts, right = cases(column.statistics[rows])
        share, bins = MeanMetric().score, []
        for place in range(BINS):
            chosen = place == BIN_OF
            pairs = np.stack([right[:, chosen].sum(axis=1), counts[:, chosen].sum(axis=1)], axis=-1)
            if answers := int(pairs[:, 1].sum()):
                stated = float((counts[:, chosen] @ PERCENT[chosen]).sum()) / 100 / answers
                accuracy = float(share(totals(pairs)))
                low, high = place / BINS, (place + 1) / BINS
                bins.append(ReliabilityBin(low=low, high=high, answers=answers, confidence=stated, accuracy=accuracy))
                self._sums.append((cluster_totals(pairs, table.codes[rows]), share))
        every = totals(column.statistics[rows])
        curve = tuple(float(accuracy_at(every, tenths / 10)) for tenths in range(1, 11))
        known = np.flatnonzero(given.known & table.complete)
        return Reliability(without=reasons(totals(given.statistics[known]).tolist()), bins=tuple(bins), curve=curve)

    def _score(self, name: str, column: Column, clusters: Rows, rows: Rows, benchmark: Benchmark) -> MetricScore:
        metric = get_metric(name)
        rows = rows[column.applies[rows]]
        answer = _unscored(metric, column, rows, self._threshold)
        if answer.reason is not None:
            return answer
        known = rows[column.known[rows]]
        statistics = column.statistics[known]
        value = _value(metric, statistics)
        if math.isnan(value):
            return answer.model_copy(update={"reason": "it is undefined for so few clusters"})
        chance = benchmark.chance if name == "accuracy" else None
        self._sums.append((cluster_totals(statistics, clusters[known]), metric.score))
        return answer.model_copy(
            update={
                "value": value,
                "margin_over_chance": None if chance is None else value - chance,
                "repeats": _repeats(metric, column, rows),
            }
        )

    def with_intervals(self, made: Mapping[str, Scores], resamples: int) -> dict[str, Scores]:
        """The scores with their intervals; they must be in the order in which :meth:`scores` made them."""
        drawn = iter(joint_intervals(self._sums, resamples=resamples, confidence=CONFIDENCE, seed=SEED))

        def interval(score: MetricScore) -> MetricScore:
            if score.value is None:
                return score
            found = next(drawn)
            ends = None if found.low is None or found.high is None else (found.low, found.high)
            return score.model_copy(update={"interval": ends, "reason": found.reason})

        def lettered(letters: Letters | None) -> Letters | None:
            if not isinstance(letters, RotatedLetters):
                return letters
            ends = {name: next(drawn) for name in letters.preference}
            preference = {
                name: (value[0], ends[name].low, ends[name].high) for name, value in letters.preference.items()
            }
            return letters.model_copy(update={"preference": preference})

        def reliable(found: Reliability | None) -> Reliability | None:
            if found is None:
                return None
            ends = [(next(drawn), one) for one in found.bins]
            bins = [
                one.model_copy(update={"interval": None if end.low is None else (end.low, end.high)})
                for end, one in ends
            ]
            return found.model_copy(update={"bins": tuple(bins)})

        def filled(scores: Scores) -> Scores:
            metrics = {name: interval(score) for name, score in scores.metrics.items()}
            letters = lettered(scores.letters)
            reliability = reliable(scores.reliability)
            breakdowns = {
                breakdown: {key: filled(part) for key, part in parts.items()}
                for breakdown, parts in scores.breakdowns.items()
            }
            return scores.model_copy(
                update={
                    "metrics": metrics,
                    "letters": letters,
                    "reliability": reliability,
                    "breakdowns": breakdowns,
                }
            )

        return {name: filled(scores) for name, scores in made.items()}


def _status_counts(statuses: Iterable[tuple[str, ...]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for kinds, items in Counter(statuses).items():  # few items differ in this
        for status in kinds:
            counts[status] += items
    return dict(sorted(counts.items()))


def _of_part(columns: Mapping[str, Column], key: str) -> dict[str, Column]:
    return {name: column.part(key) for name, column in columns.items()}


def _unscored(metric: Metric, column: Column, rows: Rows, threshold: float) -> MetricScore:
    """The score without its value and interval; ``reason`` is set if there is no value."""
    count = len(rows)
    pending, awaiting, known, failed = (
        int(np.count_nonzero(mask[rows])) for mask in (column.pending, column.awaiting, column.known, column.failed)
    )
    answered = count - failed
    judges = column.judges_of(rows)
    absent = answered - pending - known
    reason = None
    if not count:
        reason = "it applies to no item here"
    elif not answered:
        reason = f"each of {count} items lacks a response"
    elif absent:
        reason = metric.unavailable() or "the run that made these samples could not compute it"
        if absent < answered:
            reason = f"{absent} of {answered} samples lack it: {reason}"
    elif awaiting and known < threshold * answered:
        reason = f"{awaiting} of {count} items await a judge"
    elif not known:
        reason = f"none of {count} items has a verdict"
    return MetricScore(
        value=None,
        interval=None,
        samples=count,
        signature="|".join([metric.signature, *(f"judge:{judge}" for judge in judges)]),
        reason=reason,
        answered=answered if failed else None,
        judged=known if pending or judges else None,
        bounds=_bounds(metric, column, rows) if pending or judges or failed else None,
        incomplete=reason is None and known < threshold * count,
    )


def _value(metric: Metric, statistics: Array) -> float:
    return float(metric.score(totals(statistics)))


def _repeats(metric: Metric, column: Column, rows: Rows) -> Repeats | None:
    """The spread over repeats; None unless all items have the same number, and more than one."""
    if column.repeats is None:
        return None
    values = tuple(_value(metric, run) for run in column.repeats[rows].swapaxes(0, 1))
    return Repeats.model_validate({"values": values, **student_interval(values, CONFIDENCE)})


def _bounds(metric: Metric, column: Column, rows: Rows) -> tuple[float, float] | None:
    """The scores with all open items wrong, and with all of them right; None if an item has no range."""
    ends = column.bounds(rows)
    return None if ends is None or not len(rows) else (_value(metric, ends[0]), _value(metric, ends[1]))

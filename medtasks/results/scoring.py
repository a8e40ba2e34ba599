"""Scores of a set of samples: pooled, with cluster-bootstrap intervals, per breakdown, with diagnostics.

The same function scores a task, a group and a breakdown: a group's score is computed from the summed
statistics of all its items, never averaged over its tasks. An item is a sample, or the rounds of a streaming item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from medtasks.benchmarks.base import FAILED, Benchmark, Item, SampleView
from medtasks.errors import MedtasksError
from medtasks.metrics import aggregate
from medtasks.results.items import joined_items
from medtasks.results.samples import Sample
from medtasks.results.table import Column, ItemTable, Rows
from medtasks.stats import cluster_bootstrap, student_interval

__all__ = ["COVERAGE", "Letters", "MetricScore", "Repeats", "Scores", "coverage_text", "intervals", "score_samples"]

COVERAGE = 0.99
"""Share of items that must have a response and, where judged, a verdict: a score over fewer is marked incomplete."""

RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 0


class Repeats(BaseModel):
    """One metric over several runs of the same questions (MI-CXR, appendix C.1): each run's score, and their spread.

    ``deviation`` is the sample standard deviation, ``interval`` the 95 % interval of the mean by Student's t.
    """

    model_config = ConfigDict(frozen=True)

    values: tuple[float, ...]
    mean: float
    deviation: float
    interval: tuple[float, float]


class MetricScore(BaseModel):
    """One metric over one set of items.

    ``value`` and the interval's ends are in the metric's own unit (fraction, or 0 to 100 for chrF); where the
    metric could not be computed, or has no interval, they are None and ``reason`` says why. ``samples`` counts the
    items that have the metric. Where requests failed, ``answered`` counts the items that have a response; where a judge
    has a part in it, ``judged`` counts the items whose value is known. In both cases ``bounds`` are the scores with all
    others wrong and with all others right, and ``incomplete`` marks a value over less than the threshold's share of
    the items.
    """

    model_config = ConfigDict(frozen=True)

    value: float | None
    interval: tuple[float, float] | None
    samples: int
    signature: str
    reason: str | None = None
    margin_over_chance: float | None = None
    answered: int | None = None
    judged: int | None = None
    bounds: tuple[float, float] | None = None
    incomplete: bool = False
    repeats: Repeats | None = None

    @property
    def known(self) -> int:
        """Items whose value is known: they have a response and, where judged, a verdict."""
        counted = self.answered if self.judged is None else self.judged
        return self.samples if counted is None else counted


def coverage_text(items: int, answered: int | None, judged: int | None) -> str:
    """How many of ``items`` have a response and a verdict; empty where neither was in question.

    >>> coverage_text(13, 12, None), coverage_text(13, 12, 9)
    ('12 of 13 answered', '12 of 13 answered, 9 of 13 judged')
    """
    counts = {"answered": answered, "judged": judged}
    return ", ".join(f"{count:,} of {items:,} {word}" for word, count in counts.items() if count is not None)


class Letters(BaseModel):
    """Positional bias: how often each letter was right and how often it was chosen (MI-CXR section 3.2).

    The counts about the null option are None where there is none.
    """

    model_config = ConfigDict(frozen=True)

    gold: dict[str, int]
    chosen: dict[str, int]
    null_chosen_when_wrong: int | None
    null_missed_when_right: int | None


class Scores(BaseModel):
    """All scores of one set of samples.

    ``items`` is what the scores are means over; a streaming item has several samples. ``incomplete`` counts the
    streaming items of which rounds were not asked (a run with a limit); they are in no score.
    """

    model_config = ConfigDict(frozen=True)

    samples: int
    items: int
    clusters: int
    status: dict[str, int]
    metrics: dict[str, MetricScore]
    incomplete: int = 0
    breakdowns: dict[str, dict[str, Scores]] = {}
    letters: Letters | None = None


def intervals(entries: Mapping[str, Scores]) -> dict[str, dict[str, Any]]:
    """Value and interval per task or group and metric, as plain JSON."""
    return {
        name: {
            metric: {"value": score.value, "interval": score.interval, "reason": score.reason}
            for metric, score in scores.metrics.items()
        }
        for name, scores in entries.items()
    }


def score_samples(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    pooled: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    threshold: float = COVERAGE,
) -> Scores:
    """Scores of ``samples``, together and for each named breakdown of ``benchmark``.

    ``pooled`` names further metrics that only make sense over several tasks. Intervals are 95 % percentile intervals
    of a cluster bootstrap over images, patients or videos (:func:`medtasks.stats.cluster_bootstrap`, seed 0). A judged
    score whose items have a verdict to a share below ``threshold`` is marked incomplete; one that still awaits its
    judge has no value. The result does not depend on the order of samples.

    Raises:
        MedtasksError: there is no sample, or the samples of one task disagree about which metrics they hold.
    """
    if not samples:
        raise MedtasksError(f"{benchmark.name}: there is no sample to score; a score of nothing is not 0.")
    ordered = sorted(samples, key=lambda sample: (sample.sample_id, sample.task))
    _check_metrics(ordered)
    names = tuple(dict.fromkeys([*(name for sample in ordered for name in sample.scores), *pooled]))
    table = ItemTable(joined_items(ordered, benchmark, pooled), names)
    how = _How(benchmark, resamples, threshold)
    whole = _scores(table, table.rows, table.columns, list(table.incomplete.values()), how)
    return whole.model_copy(
        update={
            "breakdowns": {
                name: {
                    key: _scores(table, rows, columns, table.incomplete_in(benchmark, name, key), how)
                    for key, (rows, columns) in table.groups(benchmark, name).items()
                }
                for name in breakdowns
            }
        }
    )


@dataclass(frozen=True)
class _How:
    benchmark: Benchmark
    resamples: int
    threshold: float


def _check_metrics(samples: Sequence[Sample]) -> None:
    of_task: dict[str, Sample] = {}
    for sample in samples:
        first = of_task.setdefault(sample.task, sample)
        if list(sample.scores) != list(first.scores):
            raise MedtasksError(
                f"sample {sample.sample_id} of {sample.task} holds the metrics {list(sample.scores)}, "
                f"expected {list(first.scores)} as in the others; score the folder again."
            )


def _scores(
    table: ItemTable,
    rows: Rows,
    columns: Mapping[str, Column],
    incomplete: Sequence[Sequence[SampleView]],
    how: _How,
) -> Scores:
    """Scores of some items of a table, by the columns that count there."""
    items = [table.items[row] for row in rows.tolist()]
    views = [view for item in items for view in item.samples]
    views += [view for rest in incomplete for view in rest]
    return Scores(
        samples=len(views),
        items=len(items),
        clusters=len({view.cluster for view in views}),
        status=dict(sorted(Counter(one for view in views for one in (view.status, *view.further)).items())),
        metrics={name: _score(column, table.clusters, rows, how) for name, column in columns.items()},
        incomplete=len(incomplete),
        letters=_letters(items, how.benchmark),
    )


def _score(column: Column, clusters: Rows, rows: Rows, how: _How) -> MetricScore:
    rows = rows[column.applies[rows]]
    answer = _unscored(column, rows, how.threshold)
    if answer.reason is not None:
        return answer
    metric, known = column.metric, rows[column.known[rows]]
    statistics = column.statistics[known]
    value = aggregate(metric, statistics).overall.score
    interval = cluster_bootstrap(
        statistics, clusters[known], metric.score, resamples=how.resamples, confidence=CONFIDENCE, seed=SEED
    )
    chance = how.benchmark.chance if metric.name == "accuracy" else None
    return answer.model_copy(
        update={
            "value": value,
            "interval": None if interval.low is None or interval.high is None else (interval.low, interval.high),
            "reason": interval.reason,
            "margin_over_chance": None if chance is None else value - chance,
            "repeats": _repeats(column, rows),
        }
    )


def _unscored(column: Column, rows: Rows, threshold: float) -> MetricScore:
    """All but the value and its interval; with a reason where there is no value."""
    count, metric = len(rows), column.metric
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
        reason = f"none of {count} items has a response"
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
        bounds=_bounds(column, rows) if pending or judges or failed else None,
        incomplete=reason is None and known < threshold * count,
    )


def _repeats(column: Column, rows: Rows) -> Repeats | None:
    """The spread over repeats, where every item has as many, and more than one."""
    if column.repeats is None:
        return None
    runs = column.repeats[rows].swapaxes(0, 1)
    scores = tuple(aggregate(column.metric, statistics).overall.score for statistics in runs)
    return Repeats.model_validate({"values": scores, **student_interval(scores, CONFIDENCE)})


def _bounds(column: Column, rows: Rows) -> tuple[float, float] | None:
    """The scores with every open item all wrong, and all right; None where an item has no value at all."""
    low, high = column.end(rows, "low"), column.end(rows, "high")
    if low is None or high is None or not len(rows):
        return None
    return aggregate(column.metric, low).overall.score, aggregate(column.metric, high).overall.score


def _letters(items: Sequence[Item], benchmark: Benchmark) -> Letters | None:
    """Of the multiple-choice items; None where there is none."""
    views = [item.view for item in items if "accuracy" in item.values and item.view.status != FAILED]
    if not benchmark.options or not views:
        return None
    null = benchmark.null_option
    gold = Counter(view.document["target"] for view in views)
    chosen = Counter(view.filtered if view.status == "ok" else f"[{view.status}]" for view in views)
    wrong = sum(view.filtered == null and view.document["target"] != null for view in views)
    missed = sum(view.status == "ok" and view.filtered != null and view.document["target"] == null for view in views)
    return Letters(
        gold={letter: gold[letter] for letter in benchmark.options},
        chosen={
            **{letter: chosen[letter] for letter in benchmark.options},
            **{key: count for key, count in sorted(chosen.items()) if key not in benchmark.options},
        },
        null_chosen_when_wrong=None if null is None else wrong,
        null_missed_when_right=None if null is None else missed,
    )

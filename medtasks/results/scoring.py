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

from medtasks.benchmarks.base import FAILED, Benchmark, Item, Joined, SampleView, Value
from medtasks.errors import MedtasksError
from medtasks.metrics import Metric, aggregate, get_metric
from medtasks.results.items import joined_items, part_of
from medtasks.results.samples import Sample
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
    names = tuple(dict.fromkeys(name for sample in ordered for name in sample.scores))
    how = _How(benchmark, resamples, threshold)
    return _scores(joined_items(ordered, benchmark, pooled), (*names, *pooled), breakdowns, how)


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


def _scores(joined: Joined, names: Sequence[str], breakdowns: Sequence[str], how: _How) -> Scores:
    items = joined.items
    views = [view for item in items for view in item.samples]
    views += [view for rest in joined.incomplete.values() for view in rest]
    return Scores(
        samples=len(views),
        items=len(items),
        clusters=len({view.cluster for view in views}),
        status=dict(sorted(Counter(one for view in views for one in (view.status, *view.further)).items())),
        metrics={name: _score(name, items, how) for name in names},
        incomplete=len(joined.incomplete),
        breakdowns={
            name: {
                key: _scores(members, names, (), how) for key, members in _members(joined, how.benchmark, name).items()
            }
            for name in breakdowns
        },
        letters=_letters(items, how.benchmark),
    )


def _score(name: str, items: Sequence[Item], how: _How) -> MetricScore:
    metric = get_metric(name)
    rows = [(item.values[name], item.cluster) for item in items if _applies(metric, item.values.get(name))]
    values = [value for value, _ in rows]
    answer = _unscored(metric, values, how.threshold)
    if answer.reason is not None:
        return answer
    scored = [(value.statistics, cluster) for value, cluster in rows if value.statistics is not None]
    statistics = np.array([row for row, _ in scored], dtype=np.float64)
    value = aggregate(metric, statistics).overall.score
    interval = cluster_bootstrap(
        statistics,
        [cluster for _, cluster in scored],
        metric.score,
        resamples=how.resamples,
        confidence=CONFIDENCE,
        seed=SEED,
    )
    chance = how.benchmark.chance if name == "accuracy" else None
    return answer.model_copy(
        update={
            "value": value,
            "interval": None if interval.low is None or interval.high is None else (interval.low, interval.high),
            "reason": interval.reason,
            "margin_over_chance": None if chance is None else value - chance,
            "repeats": _repeats(metric, values),
        }
    )


def _unscored(metric: Metric, values: Sequence[Value], threshold: float) -> MetricScore:
    """All but the value and its interval; with a reason where there is no value."""
    pending = sum(value.pending for value in values)
    awaiting = sum(value.awaiting for value in values)
    known = sum(value.statistics is not None for value in values)
    failed = sum(value.failed for value in values)
    answered = len(values) - failed
    judges = sorted({value.judge for value in values if value.judge is not None})
    absent = answered - pending - known
    reason = None
    if not values:
        reason = "it applies to no item here"
    elif not answered:
        reason = f"none of {len(values)} items has a response"
    elif absent:
        reason = metric.unavailable() or "the run that made these samples could not compute it"
        if absent < answered:
            reason = f"{absent} of {answered} samples lack it: {reason}"
    elif awaiting and known < threshold * answered:
        reason = f"{awaiting} of {len(values)} items await a judge"
    elif not known:
        reason = f"none of {len(values)} items has a verdict"
    return MetricScore(
        value=None,
        interval=None,
        samples=len(values),
        signature="|".join([metric.signature, *(f"judge:{judge}" for judge in judges)]),
        reason=reason,
        answered=answered if failed else None,
        judged=known if pending or judges else None,
        bounds=_bounds(metric, values) if pending or judges or failed else None,
        incomplete=reason is None and known < threshold * len(values),
    )


def _repeats(metric: Metric, values: Sequence[Value]) -> Repeats | None:
    """The spread over repeats, where every item has as many, and more than one."""
    numbers = {len(value.repeats) for value in values}
    if len(numbers) != 1 or (number := numbers.pop()) < 2:
        return None
    runs = [np.array([value.repeats[run] for value in values], dtype=np.float64) for run in range(number)]
    scores = tuple(aggregate(metric, statistics).overall.score for statistics in runs)
    return Repeats.model_validate({"values": scores, **student_interval(scores, CONFIDENCE)})


def _applies(metric: Metric, value: Value | None) -> bool:
    """Whether an item counts for a metric: a mean over no observation (0, 0) says that it does not."""
    return value is not None and not (metric.width == 2 and value.statistics is not None and value.statistics[1] == 0)


def _bounds(metric: Metric, values: Sequence[Value]) -> tuple[float, float] | None:
    """The scores with every pending item all wrong, and all right; None where another item has no value at all."""
    ends = []
    for side in ("low", "high"):
        rows = [value.statistics or getattr(value, side) for value in values]
        if any(row is None for row in rows):
            return None
        ends.append(aggregate(metric, np.array(rows, dtype=np.float64)).overall.score)
    return (ends[0], ends[1])


def _members(joined: Joined, benchmark: Benchmark, name: str) -> dict[str, Joined]:
    if name not in benchmark.breakdowns:
        raise MedtasksError(
            f"{benchmark.name}: breakdown {name!r} is unknown; choose from {', '.join(benchmark.breakdowns)}."
        )
    keys = benchmark.breakdowns[name]
    items: dict[str, list[Item]] = {}
    incomplete: dict[str, dict[str, tuple[SampleView, ...]]] = {}
    for item in joined.items:
        for key in keys(item.view):
            items.setdefault(key, []).append(part_of(item, key) if name == benchmark.parts else item)
    for item_id, views in joined.incomplete.items():
        for key in keys(views[0]):
            incomplete.setdefault(key, {})[item_id] = views
    return {key: Joined(tuple(items.get(key, ())), incomplete.get(key, {})) for key in sorted({*items, *incomplete})}


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

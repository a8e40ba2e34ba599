"""Scores of a set of samples: pooled, with cluster-bootstrap intervals, per breakdown, with diagnostics.

The same function scores a task, a group and a breakdown: a group's score is computed from the summed
statistics of all its samples, never averaged over its tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from medtasks.benchmarks.base import Benchmark
from medtasks.errors import MedtasksError
from medtasks.metrics import aggregate, get_metric
from medtasks.results.samples import Sample
from medtasks.stats import cluster_bootstrap

__all__ = ["Letters", "MetricScore", "Scores", "score_samples"]

RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 0


class MetricScore(BaseModel):
    """One metric over one set of samples.

    ``value`` and the interval's ends are in the metric's own unit (fraction, or 0 to 100 for chrF); where the
    metric could not be computed, or has no interval, they are None and ``reason`` says why.
    """

    model_config = ConfigDict(frozen=True)

    value: float | None
    interval: tuple[float, float] | None
    samples: int
    signature: str
    reason: str | None = None
    margin_over_chance: float | None = None


class Letters(BaseModel):
    """Positional bias: how often each letter was right and how often it was chosen (MI-CXR section 3.2)."""

    model_config = ConfigDict(frozen=True)

    gold: dict[str, int]
    chosen: dict[str, int]
    null_chosen_when_wrong: int
    null_missed_when_right: int


class Scores(BaseModel):
    """All scores of one set of samples."""

    model_config = ConfigDict(frozen=True)

    samples: int
    clusters: int
    status: dict[str, int]
    metrics: dict[str, MetricScore]
    breakdowns: dict[str, dict[str, Scores]] = {}
    letters: Letters | None = None


def score_samples(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
) -> Scores:
    """Scores of ``samples``, pooled and for each named breakdown of ``benchmark``.

    Intervals are 95 % percentile intervals of a cluster bootstrap over images or patients
    (:func:`medtasks.stats.cluster_bootstrap`, seed 0). The result does not depend on the order of samples.

    Raises:
        MedtasksError: there is no sample, or the samples disagree about which metrics they hold.
    """
    if not samples:
        raise MedtasksError(f"{benchmark.name}: there is no sample to score; a score of nothing is not 0.")
    ordered = sorted(samples, key=lambda sample: (sample.sample_id, sample.task))
    metrics = list(ordered[0].scores)
    for sample in ordered:
        if list(sample.scores) != metrics:
            raise MedtasksError(
                f"sample {sample.sample_id} of {sample.task} holds the metrics {list(sample.scores)}, "
                f"expected {metrics} as in the others; score the folder again."
            )
    return Scores(
        samples=len(ordered),
        clusters=len({sample.cluster for sample in ordered}),
        status=dict(sorted(Counter(sample.status for sample in ordered).items())),
        metrics={name: _score(name, ordered, benchmark, resamples) for name in metrics},
        breakdowns={
            name: {
                key: score_samples(members, benchmark, resamples=resamples)
                for key, members in _members(ordered, benchmark, name).items()
            }
            for name in breakdowns
        },
        letters=_letters(ordered, benchmark) if benchmark.options else None,
    )


def _score(name: str, samples: Sequence[Sample], benchmark: Benchmark, resamples: int) -> MetricScore:
    metric = get_metric(name)
    without = sum(name not in sample.statistics for sample in samples)
    if without:
        known = metric.unavailable() or "the run that made these samples could not compute it"
        reason = known if without == len(samples) else f"{without} of {len(samples)} samples lack it: {known}"
        return MetricScore(value=None, interval=None, samples=len(samples), signature=metric.signature, reason=reason)
    statistics = np.array([sample.statistics[name] for sample in samples], dtype=np.float64)
    value = aggregate(metric, statistics).overall.score
    interval = cluster_bootstrap(
        statistics,
        [sample.cluster for sample in samples],
        metric.score,
        resamples=resamples,
        confidence=CONFIDENCE,
        seed=SEED,
    )
    bounds = None if interval.low is None or interval.high is None else (interval.low, interval.high)
    chance = benchmark.chance if name == "accuracy" else None
    return MetricScore(
        value=value,
        interval=bounds,
        samples=len(samples),
        signature=metric.signature,
        reason=interval.reason,
        margin_over_chance=None if chance is None else value - chance,
    )


def _members(samples: Sequence[Sample], benchmark: Benchmark, name: str) -> Mapping[str, list[Sample]]:
    if name not in benchmark.breakdowns:
        raise MedtasksError(
            f"{benchmark.name}: breakdown {name!r} is unknown; choose from {', '.join(benchmark.breakdowns)}."
        )
    members: dict[str, list[Sample]] = {}
    for sample in samples:
        for key in benchmark.breakdowns[name](sample.view()):
            members.setdefault(key, []).append(sample)
    return dict(sorted(members.items()))


def _letters(samples: Sequence[Sample], benchmark: Benchmark) -> Letters:
    gold = Counter(sample.target for sample in samples)
    chosen = Counter(sample.filtered if sample.status == "ok" else f"[{sample.status}]" for sample in samples)
    null = benchmark.null_option
    return Letters(
        gold={letter: gold[letter] for letter in benchmark.options},
        chosen={
            **{letter: chosen[letter] for letter in benchmark.options},
            **{key: count for key, count in sorted(chosen.items()) if key not in benchmark.options},
        },
        null_chosen_when_wrong=sum(sample.filtered == null and sample.target != null for sample in samples),
        null_missed_when_right=sum(
            sample.status == "ok" and sample.filtered != null and sample.target == null for sample in samples
        ),
    )

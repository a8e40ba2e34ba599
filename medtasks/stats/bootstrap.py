"""Cluster bootstrap of corpus scores, on summed statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from medtasks.errors import UsageError
from medtasks.metrics.aggregate import totals
from medtasks.metrics.base import Array

__all__ = ["Interval", "cluster_bootstrap", "cluster_totals", "clustered_standard_error"]

BLOCK = 2**20  # drawn counts held at a time


@dataclass(frozen=True)
class Interval:
    """A percentile interval; ``low`` and ``high`` are None where there can be none, ``reason`` says why."""

    low: float | None
    high: float | None
    resamples: int
    clusters: int
    confidence: float
    reason: str | None = None


def cluster_bootstrap(
    statistics: Array,
    clusters: Sequence[str],
    score: Callable[[Array], Array],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a corpus score under resampling of whole clusters with replacement.

    Questions about one image (or visits of one patient) are not independent, so clusters are drawn, not
    samples. A resample is a multinomial count per cluster; its totals are those counts times the clusters'
    summed statistics, and its score is ``score`` of the totals. Davison and Hinkley 1997, section 3.8; Efron
    1979 for percentiles.

    The result depends on neither the order of the rows nor the number of threads: clusters are sorted by
    name, their sums are correctly rounded, and the products run without BLAS. The same clusters, resamples
    and seed draw the same counts, so a paired difference is the interval of ``np.hstack([a, b])`` under a
    score that subtracts.

    Args:
        statistics: ``(n, width)``.
        clusters: n cluster names.
        score: ``(..., width) -> (...)``, as `medtasks.metrics.base.Metric.score`.
        resamples: number of resamples, at least 1.
        confidence: two-sided level, above 0 and below 1.
        seed: of numpy's PCG64.

    Returns:
        The interval, in the unit of ``score``; without bounds for fewer than two clusters, or where a
        resample's score is undefined.

    Raises:
        UsageError: shapes or arguments do not fit.
        DataError: a statistic is not a finite number.
    """
    if resamples < 1:
        raise UsageError(f"resamples is {resamples}, expected 1 or more")
    if not 0 < confidence < 1:
        raise UsageError(f"confidence is {confidence}, expected above 0 and below 1")
    sums = cluster_totals(statistics, clusters)
    count = len(sums)

    def without_bounds(reason: str) -> Interval:
        return Interval(None, None, resamples, count, confidence, reason)

    if count < 2:
        return without_bounds(f"found {count} cluster{'s' * (count != 1)}, an interval needs at least 2")
    scores = _resampled_scores(sums, score, resamples, seed)
    undefined = int(np.count_nonzero(~np.isfinite(scores)))
    if undefined:
        return without_bounds(f"the score is undefined in {undefined} of {resamples} resamples")
    low, high = np.quantile(scores, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), resamples, count, confidence)


def cluster_totals(statistics: Array, clusters: Sequence[str]) -> Array:
    """Summed statistics per cluster, ``(k, width)``, clusters in the order of their names.

    Raises:
        UsageError: not one cluster name per row of statistics.
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if statistics.ndim != 2 or len(statistics) != len(clusters):
        raise UsageError(
            f"{len(clusters)} cluster names for statistics of shape {statistics.shape}, expected (n, width)"
        )
    members: dict[str, list[int]] = {}
    for row, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(row)
    sums = [totals(statistics[members[cluster]]) for cluster in sorted(members)]
    return np.array(sums).reshape(len(sums), statistics.shape[1])


def clustered_standard_error(statistics: Array, clusters: Sequence[str]) -> float | None:
    """Standard error of a mean-type score with clustered samples; None for fewer than two clusters.

    For statistics ``(sum, count)``: the linearized ratio estimator, ``sqrt(k/(k-1) · Σ (S_c - m·N_c)²) / N``
    over the k clusters (Cochran 1977, section 6).

    Raises:
        UsageError: the statistics are not of width 2.
    """
    sums = cluster_totals(statistics, clusters)
    if sums.shape[1] != 2:
        raise UsageError(f"statistics have width {sums.shape[1]}, a mean-type metric has 2")
    count = len(sums)
    samples = math.fsum(sums[:, 1])
    if count < 2 or samples <= 0:
        return None
    mean = math.fsum(sums[:, 0]) / samples
    residuals = math.fsum((sums[:, 0] - mean * sums[:, 1]) ** 2)
    return math.sqrt(count / (count - 1) * residuals) / samples


def _resampled_scores(sums: Array, score: Callable[[Array], Array], resamples: int, seed: int) -> Array:
    """Scores ``(resamples,)``, drawn in blocks so that memory does not grow with clusters times resamples."""
    count = len(sums)
    generator = np.random.Generator(np.random.PCG64(seed))
    chances = np.full(count, 1 / count)
    block = max(1, BLOCK // count)
    scores = []
    for begin in range(0, resamples, block):
        drawn = generator.multinomial(count, chances, size=min(block, resamples - begin)).astype(np.float64)
        scores.append(score(np.einsum("rk,kw->rw", drawn, sums)))
    return np.concatenate(scores)

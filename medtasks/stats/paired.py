"""Two models on the same samples: the difference of their corpus scores under a paired cluster bootstrap."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from medtasks.errors import UsageError
from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Interval, Resamples, Score, joint_resamples, percentile_interval

__all__ = ["PairedDifference", "paired_bootstrap", "paired_difference"]


@dataclass(frozen=True)
class PairedDifference:
    """``difference`` = ``first`` - ``second``, in the unit of the score, with what the resamples say of it.

    ``interval`` and ``standard_error`` are those of the resampled differences. ``p_value`` inverts the percentile
    interval, ``2 · (1 + min(resamples ≤ 0, resamples ≥ 0)) / (1 + resamples)``, at most 1 and never 0. Its
    smallest value, ``2 / (1 + resamples)``, is too coarse for Holm's correction of more than about
    ``resamples / 40`` comparisons: there use ``p_normal``, that of ``difference / standard_error`` under a normal
    distribution. Where the interval has no bounds all three are None, and its ``reason`` says why.
    """

    first: float
    second: float
    difference: float
    interval: Interval
    standard_error: float | None = None
    p_value: float | None = None
    p_normal: float | None = None


def paired_bootstrap(
    first: Array,
    second: Array,
    clusters: Sequence[str],
    score: Score,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference:
    """Whether two models differ in a corpus score: both are scored in the same resamples of whole clusters.

    Paired bootstrap resampling (Koehn 2004; sacrebleu's ``--paired-bs``) with clusters in place of samples; the
    two-sided p-value inverts the interval (Davison and Hinkley 1997, section 5.4) and is about twice sacrebleu's,
    which counts one tail of the resamples about their mean. The draws are those of
    `medtasks.stats.bootstrap.cluster_bootstrap`.

    Args:
        first: statistics ``(n, width)`` of one model.
        second: statistics of the other, rows in the same order of samples.
        clusters: n cluster names.
        score: ``(..., width) -> (...)``, as `medtasks.metrics.base.Metric.score`.
        resamples: number of resamples, at least 1.
        confidence: two-sided level, above 0 and below 1.
        seed: of numpy's PCG64.

    Raises:
        UsageError: shapes or arguments do not fit.
        DataError: a statistic is not a finite number.
    """
    drawn = joint_resamples([(first, score), (second, score)], clusters, resamples=resamples, seed=seed)
    return paired_difference(drawn, 0, 1, confidence)


def paired_difference(drawn: Resamples, first: int, second: int, confidence: float = 0.95) -> PairedDifference:
    """The comparison of two entries of joint resamples.

    Raises:
        UsageError: the confidence is no level, or there is no such entry.
    """
    for entry in (first, second):
        if not 0 <= entry < len(drawn.points):
            raise UsageError(f"entry {entry} was asked for, expected 0 to {len(drawn.points) - 1}")
    apart = drawn.scores[first] - drawn.scores[second]
    interval = percentile_interval(apart, drawn.clusters, confidence)
    one, two = float(drawn.points[first]), float(drawn.points[second])
    if interval.low is None:
        return PairedDifference(one, two, one - two, interval)
    tails = int((apart <= 0).sum()), int((apart >= 0).sum())
    p_value = min(1.0, 2 * (1 + min(tails)) / (1 + len(apart)))
    error = float(np.std(apart, ddof=1)) if len(apart) > 1 else None
    return PairedDifference(one, two, one - two, interval, error, p_value, _p_normal(one - two, error, p_value))


def _p_normal(difference: float, error: float | None, p_value: float) -> float | None:
    if error is None:
        return None
    if error <= 1e-9 * abs(difference):  # the same in every resample, but for rounding: as sure as their count allows
        return p_value
    return max(math.erfc(abs(difference) / error / math.sqrt(2)), sys.float_info.min)

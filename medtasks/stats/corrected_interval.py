"""95 % intervals of corrected means and of their differences, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import TAILS
from medtasks.stats.prediction_powered import CorrectedMean
from medtasks.stats.proportions import wilson

PREDICTION_POWERED = "ppi-wilson-clustered"
"""Name of the method of the interval of a corrected score."""


def corrected_interval(mean: CorrectedMean) -> tuple[float, float]:
    """Both ends of the interval of a corrected mean: Wilson's with the effective number of labels,
    and with Student's t.

    The effective number is ``p(1 - p) / variance`` of the estimate p as a share of the range. What
    unseen disagreements add to the variance (`CorrectedMean.pseudo_variance`) counts above as well
    as below, so that it is the number of labels if people rate all answers alike, and the interval
    reaches as far as Wilson's of that many.
    """
    share = min(1.0, max(0.0, mean.value / mean.width))
    unseen = mean.pseudo_variance / mean.width**2 * mean.effective_labels
    observations = (share * (1 - share) + unseen) * mean.width**2 / mean.variance
    quantile = _quantile(_freedom(mean))
    low, high = wilson(np.array(share), np.array(observations), np.array(quantile))
    return mean.width * max(0.0, float(low)), mean.width * min(1.0, float(high))


@dataclass(frozen=True)
class CorrectedDifference:
    """The difference of two corrected means over the same questions: its interval and the p-value
    of no difference, both by Student's t.
    """

    difference: float
    low: float
    high: float
    p_value: float


def corrected_difference(first: CorrectedMean, second: CorrectedMean) -> CorrectedDifference:
    """``first - second``, whose answers are in the same clusters with the same numbers.

    The variance is that of the differences of the clusters' influences, but at least that of both
    choices of labelled answers.
    """
    difference = first.value - second.value
    label_variance = first.label_variance + second.label_variance
    paired = _paired_influences(first.influences, second.influences)
    observed = max(float((paired**2).sum()), label_variance)
    variance = observed + first.pseudo_variance + second.pseudo_variance
    parts = (
        (first.label_variance, first.label_freedom),
        (second.label_variance, second.label_freedom),
        (observed - label_variance, min(first.question_freedom, second.question_freedom)),
    )
    freedom = _satterthwaite(parts)
    error = math.sqrt(variance)
    reach = _quantile(freedom) * error
    width = first.width
    return CorrectedDifference(
        difference=difference,
        low=max(-width, difference - reach),
        high=min(width, difference + reach),
        p_value=_two_sided_p(difference / error, freedom),
    )


def _paired_influences(first: Array, second: Array) -> Array:
    """The differences of the clusters' influences; a cluster that one side lacks has none there."""
    count = max(len(first), len(second))
    differences = np.zeros(count)
    differences[: len(first)] += first
    differences[: len(second)] -= second
    return differences


def _freedom(mean: CorrectedMean) -> float:
    """The degrees of freedom of the variance of a mean."""
    question_variance = max(0.0, mean.variance - mean.pseudo_variance - mean.label_variance)
    parts = (
        (mean.label_variance, mean.label_freedom),
        (question_variance, mean.question_freedom),
    )
    return _satterthwaite(parts)


def _satterthwaite(parts: tuple[tuple[float, float], ...]) -> float:
    """The degrees of freedom of a sum of variances with their degrees of freedom, ``(ΣV)² / Σ(V² /
    ν)`` (Satterthwaite 1946); the least of them if all are 0.
    """
    total = sum(variance for variance, _ in parts)
    if total <= 0:
        return min(freedom for _, freedom in parts)
    return total**2 / sum(variance**2 / freedom for variance, freedom in parts)


def _quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(freedom, TAILS[1]))


def _two_sided_p(statistic: float, freedom: float) -> float:
    """The two-sided p-value of a statistic with Student's t distribution."""
    from scipy.special import stdtr  # slow to import

    return float(2 * stdtr(freedom, -abs(statistic)))

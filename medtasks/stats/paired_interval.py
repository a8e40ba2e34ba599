"""The interval of a paired difference: all differences that the sign-flip test does not reject."""

from __future__ import annotations

import math

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import CONFIDENCE
from medtasks.stats.sign_flips import LEAST_CLUSTERS

DIGITS = 12
"""Means of clusters that agree to this many digits are equal: they differ in rounding only."""
ENUMERATED = 12
"""Every subset of at most so many clusters is counted."""
REJECTED = 1 - CONFIDENCE
"""A difference is rejected if its p-value is at most this."""


def accepted_differences(
    added: Array, weights: Array, difference: float, p_value: float
) -> tuple[float, float] | None:
    """The smallest and the largest difference that the sign-flip test does not reject; None if it
    rejects none.

    If the true difference is d, a cluster with the share w of the items adds d·w to the difference,
    and what remains is as likely to have the other sign. Changing signs leaves a sum as far from 0
    if and only if d lies beyond the mean of the clusters that are changed, so d is rejected if it
    lies beyond all but 2.5 % of the means of subsets of clusters. For many clusters the sum of
    random signs is taken to have its normal distribution, corrected for kurtosis (Cornish and
    Fisher 1938).

    Args:
        added: what each cluster ``(clusters,)`` adds to the difference.
        weights: the share ``(clusters,)`` of the items in each.
        difference: the observed difference.
        p_value: the p-value of no difference; the interval contains 0 if it is above 5 %.
    """
    clusters = int(np.count_nonzero(weights))
    if clusters < LEAST_CLUSTERS:
        return None
    total = float(added.sum())
    if total and 0.5 < difference / total < 2:  # a sum of effects is not exactly their joint effect
        added = added * (difference / total)
    if clusters <= ENUMERATED:
        low, high = _ends_of_subsets(added, weights, clusters)
    else:
        means = np.round(added / weights, DIGITS)  # none of the accepted lies beyond all of them
        low = max(_normal_end(added, weights, side=-1), float(means.min()))
        high = min(_normal_end(added, weights, side=1), float(means.max()))
    return _consistent(min(low, difference), max(high, difference), difference, p_value)


def _consistent(low: float, high: float, difference: float, p_value: float) -> tuple[float, float]:
    """The ends, moved to where the interval contains 0 if and only if the test does not reject
    it.
    """
    if p_value > REJECTED:
        return min(low, 0.0), max(high, 0.0)
    least = 1e-9 * abs(difference)  # of a difference that is not 0
    if difference > 0:
        return max(low, least), high
    return low, min(high, -least)


def _ends_of_subsets(added: Array, weights: Array, clusters: int) -> tuple[float, float]:
    """Both ends from the means of all subsets of the clusters but the empty one.

    Of the ``2^k - 1`` means, half the rejected share of ``2^k`` lies beyond each end.
    """
    numbers = np.arange(1, 2**clusters)[:, None]
    members = (numbers >> np.arange(clusters) & 1).astype(np.float64)  # (subsets, clusters)
    means = np.sort(np.round((members @ added) / (members @ weights), DIGITS))
    beyond = math.floor(REJECTED * 2.0 ** (clusters - 1))
    return float(means[beyond - 1]), float(means[-beyond])


def _normal_end(added: Array, weights: Array, side: int) -> float:
    """The low end (``side`` -1) or the high one (1) by the normal distribution of a sum with random
    signs.

    At the end d, the sum of what remains, ``Σ (added - d·weights)``, is z of its standard
    deviations from 0, with the variance ``Σ (added - d·weights)²``. That is a quadratic equation:
    ``(1 - z²·Σw²)·d² - 2·(Σa - z²·Σaw)·d + (Σa)² - z²·Σa² = 0``. The quantile z depends on the
    kurtosis of the sum and so on d; three iterations settle it.
    """
    from scipy.special import ndtri

    normal_quantile = float(ndtri(1 - REJECTED / 2))
    total = float(added.sum())
    added_squares = float((added**2).sum())
    products = float((added * weights).sum())
    weight_squares = float((weights**2).sum())
    quantile, end = normal_quantile, total
    for _ in range(3):
        quadratic = 1 - quantile**2 * weight_squares
        linear = total - quantile**2 * products
        constant = total**2 - quantile**2 * added_squares
        if quadratic <= 0:  # a few clusters outweigh all others
            return side * math.inf
        end = (linear + side * math.sqrt(max(0.0, linear**2 - quadratic * constant))) / quadratic
        remaining_squares = (added - end * weights) ** 2
        if not remaining_squares.any():
            break
        quantile = _corrected_quantile(normal_quantile, remaining_squares)
    return end


def _corrected_quantile(normal_quantile: float, squares: Array) -> float:
    """The quantile of a sum with random signs, corrected for kurtosis (Cornish and Fisher 1938).

    ``z + (z³ - 3z)/24 · κ`` with the excess kurtosis ``κ = -2·Σx⁴ / (Σx²)²``.
    """
    kurtosis = -2 * float((squares**2).sum()) / float(squares.sum()) ** 2
    return normal_quantile + (normal_quantile**3 - 3 * normal_quantile) / 24 * kurtosis

"""Wilson's interval for scores from 0 to 1 of items in clusters, and the formulas it is made of.

All of them take many scores at once: ``(...)`` are any leading dimensions, and the sizes, sums or
scores of clusters are along the last one, ``(..., clusters)``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import TAILS

ASSUMED_CORRELATION = 0.3
"""Intraclass correlation of answers that show none, because nearly all are right or nearly all
wrong.
"""
ENOUGH = 3.0
"""With so many clusters' worth of the rarer kind of answers, the observed correlation and the
assumed one count alike; with three times as many the assumed one has a weight of a tenth.
"""
LEAST_EFFECT = 0.9
"""Smaller design effects are put down to chance: answers about one image are rarely less alike than
about two.
"""
ROUNDING = 1e-12
"""A variance below this has no digit that is not rounding."""


def share_ends(
    value: Array, without: Array, sums: Array, sizes: Array, squares: Array
) -> tuple[Array, Array]:
    """Both ends ``(...)`` of the intervals of scores from 0 to 1, of two or more clusters with an
    item each.

    The variance of a score is that of a single value times the design effect, ``1 + (Σm²/Σm - 1) ·
    icc`` for clusters of m items (Kish 1965), divided by the number of items; and at least the
    jackknife's over clusters. As long as right or wrong answers are few, both factors are shrunk:
    the variance towards that of answers that are right or wrong, the correlation towards
    `ASSUMED_CORRELATION`. Without it, thirty right answers would have no variance.

    Args:
        value: scores ``(...)``.
        without: the scores ``(..., clusters)`` without each cluster.
        sums: the sums ``(..., clusters)`` of the items' values, or pseudo-values, in each.
        sizes: the numbers of items ``(..., clusters)`` in each.
        squares: the sums ``(...)`` of the squared values of all items.
    """
    items = sizes.sum(axis=-1)
    # both as multiples of the variance of as many independent right or wrong answers
    effect_by_items = design_effect(value, sums, sizes, squares)
    effect_by_clusters = _ratio(jackknife_variance(value, without) * items, value * (1 - value))
    effective_items = items / np.maximum(effect_by_items, effect_by_clusters)
    return wilson(value, effective_items, student(sizes))


def design_effect(value: Array, sums: Array, sizes: Array, squares: Array) -> Array:
    """The variance ``(...)`` of scores as a multiple of that of as many independent right or wrong
    answers, shrunk while right or wrong answers are few; the arguments are those of `share_ends`.
    """
    items, clusters = sizes.sum(axis=-1), sizes.shape[-1]
    rarer_clusters = np.minimum(value, 1 - value) * clusters

    observed_variance = np.maximum(squares / items - value**2, 0.0)
    binomial_weight = _weight_of_assumption(rarer_clusters, 1.0)
    relative_variance = binomial_weight + (1 - binomial_weight) * _ratio(
        observed_variance, value * (1 - value)
    )

    observed_correlation = intraclass_correlation(sums, sizes, squares)
    assumed_weight = _weight_of_assumption(rarer_clusters, ENOUGH)
    correlation = assumed_weight * ASSUMED_CORRELATION + (1 - assumed_weight) * observed_correlation
    effect: Array = relative_variance * np.maximum(
        1 + (kish_size(sizes) - 1) * correlation, LEAST_EFFECT
    )
    return effect


def wilson(share: Array, observations: Array, quantile: Array) -> tuple[Array, Array]:
    """Both ends ``(...)`` of Wilson's interval of a proportion ``share`` of so many observations
    (Wilson 1927).

    With z the ``quantile`` and n the observations: ``(p + z²/2n ± z·sqrt(p(1 - p)/n + z²/4n²)) /
    (1 + z²/n)``.

    >>> low, high = wilson(np.array(0.5), np.array(10.0), np.array(1.959964))
    >>> round(float(low), 4), round(float(high), 4)
    (0.2366, 0.7634)
    """
    added = quantile**2 / observations
    centre = (share + added / 2) / (1 + added)
    reach = np.sqrt(added * (share * (1 - share) + added / 4)) / (1 + added)
    return centre - reach, centre + reach


def kish_size(sizes: Array) -> Array:
    """Expected number of items ``(...)`` in the cluster of an item drawn at random, ``Σm²/Σm``
    (Kish 1965).

    >>> float(kish_size(np.array([1.0, 3.0])))
    2.5
    """
    size: Array = (sizes**2).sum(axis=-1) / sizes.sum(axis=-1)
    return size


def student(sizes: Array) -> Array:
    """The 97.5 % quantile ``(...)`` of Student's t for clusters of these sizes ``(..., clusters)``.

    The degrees of freedom are one fewer than the geometric mean of two numbers of clusters: of
    those that there are, and of equal ones that would be as precise, ``(Σm)²/Σm²``. There is at
    least one.
    """
    equal_clusters = sizes.sum(axis=-1) / kish_size(sizes)
    freedom = np.maximum(np.sqrt(sizes.shape[-1] * equal_clusters) - 1, 1.0)
    if freedom.ndim:
        return _quantile_function()(freedom, TAILS[1])
    return np.array(_quantile(round(float(freedom), 9)))


def jackknife_variance(value: Array, without: Array) -> Array:
    """Variance ``(...)`` of scores, from the scores ``(..., clusters)`` without each cluster.

    ``(k - 1)/k · Σ (without - value)²`` over k clusters (Efron and Tibshirani 1993, chapter 11).
    """
    clusters = without.shape[-1]
    squared_changes = (without - value[..., None]) ** 2
    variance: Array = (clusters - 1) / clusters * squared_changes.sum(axis=-1)
    return variance


def intraclass_correlation(sums: Array, sizes: Array, squares: Array) -> Array:
    """Correlation ``(...)`` of two values of one cluster by the analysis of variance, at most 1.

    ``(between - within) / (between + (m₀ - 1) · within)`` of the mean squares, with m₀ the size of
    equal clusters that would be as informative (Donner 1986). 0 if nothing varies, and if no
    cluster has two values. The arguments are those of `share_ends`.
    """
    items, clusters = sizes.sum(axis=-1), sizes.shape[-1]
    cluster_squares = (sums**2 / sizes).sum(axis=-1)
    between = (cluster_squares - sums.sum(axis=-1) ** 2 / items) / (clusters - 1)
    within = np.maximum(squares - cluster_squares, 0.0) / np.maximum(items - clusters, 1.0)
    typical_size = (items - kish_size(sizes)) / (clusters - 1)
    correlation = _ratio(between - within, between + (typical_size - 1) * within)
    return np.where(items > clusters, np.minimum(correlation, 1.0), 0.0)


def _weight_of_assumption(rarer_clusters: Array, half: float) -> Array:
    """Weight ``(...)`` of an assumption beside so many clusters' worth of the rarer kind of
    answers: 1 without any, a half at ``half``, then falling with the square.
    """
    weight: Array = 1 / (1 + (rarer_clusters / half) ** 2)
    return weight


def _ratio(part: Array, whole: Array) -> Array:
    """``part / whole`` of variances of shares, 0 if the whole is 0 but for rounding."""
    ratio: Array = np.divide(
        part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > ROUNDING
    )
    return ratio


@functools.lru_cache(maxsize=4096)  # thousands of scores of a run have the same clusters
def _quantile(freedom: float) -> float:
    return float(_quantile_function()(freedom, TAILS[1]))


def _quantile_function() -> Callable[[Array | float, float], Array]:
    """Quantiles of Student's t, by degrees of freedom and probability."""
    from scipy.special import stdtrit  # slow to import

    quantiles: Callable[[Array | float, float], Array] = stdtrit
    return quantiles

"""Items that good models miss and weak ones get: item–rest discrimination of several models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import TAILS
from medtasks.stats.student import student_quantile
from medtasks.stats.votes import Integers, Mask, cluster_sums

LEAST_INVERTED = 3
"""Fewer models cannot be ordered by how good they are on the other items."""

_STEP = 0.05
"""Abilities are rounded to this, in logits, so that their sums can be counted."""
_LEAST_ACCURACY = 0.01
"""Accuracies are taken as no closer to 0 and 1 than this."""


@dataclass(frozen=True)
class Discrimination:
    """Arrays ``(items,)``, NaN where all models that answered are right or all are wrong.

    ``difference`` is the mean accuracy on the other clusters' items of the models that get an item
    right, minus that of those that miss it, a fraction; ``low`` and ``high`` are its 95 % interval
    for clustered items. ``p_value`` is the probability of an order of models at least as inverted,
    given how many are right.
    """

    difference: Array
    low: Array
    high: Array
    p_value: Array


def item_discrimination(is_right: Mask, answered: Mask, clusters: Integers) -> Discrimination:
    """The discrimination of each item.

    The interval is for these models: a linear combination of their accuracies, with the linearized
    standard error over clusters (Cochran 1977, section 6) and Student's t. The p-value is for these
    items: the exact conditional test of the Rasch model. Given how many models are right, the
    probability of each set of right models depends on the models' abilities alone, not on the
    difficulty of the item (Rasch 1960); the test's statistic is the sum of these abilities.

    Args:
        is_right: whether ``(items, models)`` each model is right.
        answered: whether ``(items, models)`` each model answered; it is not right otherwise.
        clusters: the number of each item's cluster, from 0.
    """
    right = (is_right & answered).astype(np.float64)
    asked = answered.astype(np.float64)
    right_by_cluster = cluster_sums(right, clusters)
    asked_by_cluster = cluster_sums(asked, clusters)
    rest_asked = asked.sum(axis=0) - asked_by_cluster[clusters]
    rest_right = right.sum(axis=0) - right_by_cluster[clusters]
    rest = rest_right / np.maximum(rest_asked, 1)

    contrasts = _contrasts(right, asked)
    difference = (contrasts * rest).sum(axis=1)
    covariance = _accuracy_covariance(right_by_cluster, asked_by_cluster)
    variance = np.einsum("im,mn,in->i", contrasts, covariance, contrasts)
    cluster_count = len(right_by_cluster)
    reach = np.full(len(right), np.nan)
    if cluster_count > 1:
        reach = student_quantile(TAILS[1], cluster_count - 1) * np.sqrt(np.maximum(variance, 0.0))
    accuracy = right.sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
    return Discrimination(
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p_value=_inversion_p_values(is_right & answered, answered, accuracy),
    )


def _contrasts(right: Array, asked: Array) -> Array:
    """The weight ``(items, models)`` of each model's accuracy in an item's difference; NaN where
    all models are right or all are wrong.
    """
    wrong = asked - right
    right_count = right.sum(axis=1, keepdims=True)
    wrong_count = wrong.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        contrasts: Array = right / right_count - wrong / wrong_count
    contrasts[((right_count == 0) | (wrong_count == 0))[:, 0]] = np.nan
    return contrasts


def _accuracy_covariance(right_by_cluster: Array, asked_by_cluster: Array) -> Array:
    """The covariance ``(models, models)`` of the models' accuracies over clusters of items."""
    clusters = len(right_by_cluster)
    asked = np.maximum(asked_by_cluster.sum(axis=0), 1)
    accuracy = right_by_cluster.sum(axis=0) / asked
    residuals = (right_by_cluster - accuracy * asked_by_cluster) / asked
    factor = clusters / (clusters - 1) if clusters > 1 else np.nan
    covariance: Array = factor * (residuals.T @ residuals)
    return covariance


def _inversion_p_values(is_right: Mask, answered: Mask, accuracy: Array) -> Array:
    """The p-value ``(items,)`` of the exact conditional test; NaN where all are right or wrong."""
    bounded = np.clip(accuracy, _LEAST_ACCURACY, 1 - _LEAST_ACCURACY)
    logits = np.log(bounded) - np.log1p(-bounded)
    # from 0, as sums of abilities are indices
    steps = np.rint((logits - logits.min(initial=np.inf)) / _STEP).astype(np.int64)
    p_values = np.full(len(is_right), np.nan)
    for item in range(len(is_right)):
        asked = np.flatnonzero(answered[item])
        right = np.flatnonzero(is_right[item])
        if 0 < len(right) < len(asked):
            cumulative = _cumulative_sums(tuple(sorted(steps[asked].tolist())))[len(right)]
            p_values[item] = cumulative[int(steps[right].sum())]
    return p_values


@lru_cache(maxsize=256)
def _cumulative_sums(steps: tuple[int, ...]) -> Array:
    """Probabilities ``(right models, sums)`` that the abilities of so many right models sum to at
    most so many steps.
    """
    weights = np.zeros((len(steps) + 1, sum(steps) + 1))
    weights[0, 0] = 1.0
    for number, step in enumerate(steps):
        # divided by the largest odds, which cancels in the probabilities given the number right
        odds = np.exp(_STEP * (step - max(steps)))
        for count in range(number, -1, -1):
            reached = weights[count, : weights.shape[1] - step]
            weights[count + 1, step:] += odds * reached
    cumulative: Array = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    return cumulative


def false_discovery_values(p_values: Array) -> Array:
    """Adjusted p-values: listing those of at most q keeps the expected share of false ones among
    the listed at most q, for independent tests (Benjamini and Hochberg 1995). NaN is no test.

    >>> false_discovery_values(np.array([0.01, np.nan, 0.04, 0.02])).round(3).tolist()
    [0.03, nan, 0.04, 0.03]
    """
    adjusted = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    descending = tested[np.argsort(-p_values[tested], kind="stable")]
    ranks = np.arange(len(tested), 0, -1)
    scaled = p_values[descending] * len(tested) / ranks
    adjusted[descending] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return adjusted

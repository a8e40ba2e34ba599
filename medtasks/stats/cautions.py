"""When the paired test is less reliable than its p-value says: rules found by simulation
(docs/statistics.md).
"""

from __future__ import annotations

import math

import numpy as np

from medtasks.metrics.base import Array

FEW_FILLED = 15
"""A comparison is warned of if its scarcer outcome fills fewer clusters (`filled_clusters`)."""
LEAST_SHARE = 0.75
"""A comparison is warned of if one score counts a smaller share of the observations of the
other.
"""
UNEVEN = (
    "errors or correct answers are few, or in few large clusters: p may be too small if one model's are more "
    "concentrated than the other's"
)
UNLIKE_COVERAGE = (
    f"one score counts less than {100 * LEAST_SHARE:g} % of the observations of the other: the models may have left "
    "out unlike questions, and differences are harder to detect"
)


def cautions(first: Array, second: Array, first_weights: Array, second_weights: Array) -> list[str]:
    """The warnings about a comparison of these cluster sums ``(clusters, width)`` and observations
    ``(clusters,)``.

    Two models that are equal only on average are told apart too often if one model's errors are
    concentrated in a few clusters, which mostly are not among those drawn, and the other's are not.
    Fewer errors make that worse, and so do uneven clusters.
    """
    found = []
    if (
        not np.array_equal(first, second)
        and filled_clusters(first, second, first_weights + second_weights) < FEW_FILLED
    ):
        found.append(UNEVEN)
    observed = sorted((float(first_weights.sum()), float(second_weights.sum())))
    if observed[0] < LEAST_SHARE * observed[1]:
        found.append(UNLIKE_COVERAGE)
    return found


def filled_clusters(first: Array, second: Array, weights: Array) -> float:
    """How many clusters of equal size the scarcer outcome of both models together would fill.

    That is the effective number of clusters, ``(Σw)² / Σw²`` (Kish 1965), times the share of errors
    or of correct answers, whichever is smaller. A score that is not the mean of values from 0 to 1
    has no such share; it is taken to be a half.
    """
    effective = float(weights.sum()) ** 2 / float((weights**2).sum())
    return effective * _scarcer_share(first + second)


def _scarcer_share(sums: Array) -> float:
    if sums.shape[1] != 2:
        return 0.5
    reached, possible = sums.T
    if (reached < 0).any() or (reached > possible).any():
        return 0.5
    share = math.fsum(reached) / math.fsum(possible)
    return min(share, 1 - share)

"""Warnings about a comparison: too few clusters, and outcomes by which the paired test is less
reliable than its p-value says. The rules were found by simulation (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.sign_flips import LEVEL

FEW_CLUSTERS = 20
"""A comparison over fewer clusters carries a warning (``performance/paired_test.py``,
docs/statistics.md).
"""
FEW_FILLED = 15
"""A comparison is warned of if its scarcer outcome fills fewer clusters (`filled_clusters`)."""
LEAST_SHARE = 0.75
"""A comparison is warned of if one score counts a smaller share of the observations of the
other.
"""
UNEVEN = (
    "errors or correct answers are few, or in few large clusters: "
    "p may be too small if one model's are more concentrated than the other's"
)
UNLIKE_COVERAGE = (
    f"one score counts less than {100 * LEAST_SHARE:g} % of the observations of the other: "
    "the models may have left out unlike questions, and differences are harder to detect"
)


def few_clusters(clusters: int, tests: int = 1) -> str | None:
    """The warning about a comparison over few clusters, one of ``tests`` that Holm corrects; None
    with enough.
    """
    if clusters >= FEW_CLUSTERS or clusters < 2:
        return None
    least_p = min(1.0, tests * 2.0 ** (1 - clusters))
    if least_p <= LEVEL:
        fewer = f"with {clusters} clusters, fewer than {FEW_CLUSTERS}"
        return f"{fewer}, only large differences are detected"
    level = f"the {100 * LEVEL:g} % level"
    corrected = f" after Holm's correction of {tests:,} tests" if tests > 1 else ""
    return (
        f"with {clusters} clusters no difference can be significant at {level}: "
        f"p is at least {least_p:.3g}{corrected}"
    )


def comparison_warning(clusters: int, cautions: Sequence[str], tests: int = 1) -> str | None:
    """All that a reader of a comparison is warned of: few clusters (`few_clusters`), else `UNEVEN`,
    and the rest of its ``cautions``; None without any.
    """
    few = few_clusters(clusters, tests)
    if few is None:
        return "; ".join(cautions) or None
    return "; ".join([few, *(caution for caution in cautions if caution != UNEVEN)])


def cautions(first: Array, second: Array, first_weights: Array, second_weights: Array) -> list[str]:
    """The warnings about a comparison of these cluster sums ``(clusters, width)`` and observations
    ``(clusters,)``.

    Two models that are equal only on average are told apart too often if one model's errors are
    concentrated in a few clusters, which mostly are not among those drawn, and the other's are not.
    Fewer errors make that worse, and so do uneven clusters.
    """
    warnings = []
    if not np.array_equal(first, second):
        filled = filled_clusters(first, second, first_weights + second_weights)
        if filled < FEW_FILLED:
            warnings.append(UNEVEN)
    fewer, more = sorted((float(first_weights.sum()), float(second_weights.sum())))
    if fewer < LEAST_SHARE * more:
        warnings.append(UNLIKE_COVERAGE)
    return warnings


def filled_clusters(first: Array, second: Array, weights: Array) -> float:
    """How many clusters of equal size the scarcer outcome of both models together would fill.

    That is the effective number of clusters, ``(Σw)² / Σw²`` (Kish 1965), times the share of errors
    or of correct answers, whichever is smaller. A score that is not the mean of values from 0 to 1
    has no such share; it is taken to be a half. The sums are ``(clusters, width)``, the weights
    ``(clusters,)``.
    """
    effective_clusters = float(weights.sum()) ** 2 / float((weights**2).sum())
    return effective_clusters * _scarcer_share(first + second)


def _scarcer_share(sums: Array) -> float:
    """The share of errors or of correct answers, whichever is smaller."""
    if sums.shape[1] != 2:
        return 0.5
    reached, possible = sums.T
    if (reached < 0).any() or (reached > possible).any():
        return 0.5
    share = math.fsum(reached) / math.fsum(possible)
    return min(share, 1 - share)

"""Two models on the same samples: the difference of their scores, its interval, and one test for every metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from medtasks.errors import UsageError
from medtasks.metrics.aggregate import totals
from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Clusters, Score, check_confidence, cluster_totals
from medtasks.stats.flips import sign_flip_p
from medtasks.stats.student import student_quantile

FEW_CLUSTERS = 20
"""A comparison over fewer clusters carries a warning (``benchmarks/paired_test.py``, docs/statistics.md)."""
LEVEL = 0.05


@dataclass(frozen=True)
class ClusteredScore:
    """A corpus score and its statistics: ``sums`` ``(clusters, width)``, clusters in the order of their names.

    ``without`` ``(clusters,)`` are the scores without each cluster; NaN if nothing is left to score.
    """

    score: Score
    value: float
    sums: Array
    without: Array


@dataclass(frozen=True)
class PairedDifference:
    """``difference`` = ``first`` - ``second``, in the unit of the score, over ``clusters`` clusters.

    ``low`` and ``high`` are the ends of its confidence interval. If there is a ``reason`` why they cannot be computed,
    they, ``standard_error`` and ``p_value`` are None.
    """

    first: float
    second: float
    difference: float
    clusters: int
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    p_value: float | None = None
    reason: str | None = None


def clustered_score(statistics: Array, clusters: Clusters, score: Score) -> ClusteredScore:
    """One side of a comparison.

    Args:
        statistics: ``(n, width)``.
        clusters: of each sample the name of its cluster, or its number from 0 in the order of names.
        score: ``(..., width) -> (...)``, as `medtasks.metrics.base.Metric.score`.

    Raises:
        UsageError: shapes do not fit.
        DataError: a statistic is not a finite number.
    """
    table = np.asarray(statistics, dtype=np.float64)
    sums = cluster_totals(table, clusters)
    value = float(score(totals(table))) if len(table) else math.nan
    return ClusteredScore(score, value, sums, score(sums.sum(axis=0) - sums))


def paired_difference(first: ClusteredScore, second: ClusteredScore, confidence: float = 0.95) -> PairedDifference:
    """Whether two models differ in a corpus score, on the same samples in the same clusters.

    *Test.* If the models do not differ, their answers to a cluster are exchangeable. Swapping them flips the sign of
    the cluster's contribution: the score with the first model's statistics of this cluster minus the score with the
    second's, with all other clusters fixed at the average of the two models. Swaps leave that average unchanged, so the
    sign-flip test of the sum (`medtasks.stats.sign_flip_p`) is exact for every score of summed statistics, BLEU and
    chrF as well as means, for any number of clusters of any size. For a mean over the same items, a cluster's
    contribution is its difference divided by the number of items; in general the sum is the difference up to terms of
    third order.
    For models that are equal only on average the test needs many clusters (Canay, Romano and Shaikh 2017). With up to
    15 unequal clusters, Student's t with a clustered standard error finds a difference between equal models in 6 to 9
    of 100 comparisons. In return, no difference is significant at the 5 % level with fewer than 6 clusters.

    *Interval.* ``difference ± t · standard_error`` with the standard error of the jackknife over clusters (Efron and
    Tibshirani 1993, chapter 11; MacKinnon, Nielsen and Webb 2023 for few and unequal clusters) and Student's t with one
    fewer degrees of freedom than clusters. It is computed separately from the test: near the threshold, and below 6
    clusters, it may exclude 0 although the test does not reject. docs/statistics.md has size, power and coverage.

    Raises:
        UsageError: the two do not have the same clusters and metric, or the confidence is not between 0 and 1.
    """
    check_confidence(confidence)
    if first.sums.shape != second.sums.shape:
        raise UsageError(f"the two have sums of shapes {first.sums.shape} and {second.sums.shape}, expected equal ones")
    count = len(first.sums)
    found = PairedDifference(first.value, second.value, first.value - second.value, count)
    if count < 2:
        return replace(found, reason=f"found {count} cluster{'s' * (count != 1)}, a comparison needs at least 2")
    middle, half = (first.sums + second.sums).sum(axis=0) / 2, (first.sums - second.sums) / 2
    added = first.score(middle + half) - first.score(middle - half)
    left_out = first.without - second.without
    if not math.isfinite(found.difference):
        return replace(found, reason="the score is undefined")
    undefined = int(np.count_nonzero(~(np.isfinite(added) & np.isfinite(left_out))))
    if undefined:
        return replace(found, reason=f"the score is undefined without {undefined} of {count} clusters")
    error = math.sqrt((count - 1) / count * float(((left_out - found.difference) ** 2).sum()))
    reach = student_quantile((1 + confidence) / 2, count - 1) * error
    return replace(
        found,
        low=found.difference - reach,
        high=found.difference + reach,
        standard_error=error,
        p_value=sign_flip_p(added),
    )


def few_clusters(clusters: int, tests: int = 1) -> str | None:
    """The warning about a comparison over few clusters, one of ``tests`` that Holm corrects; None if there are enough.

    >>> few_clusters(4)
    'with 4 clusters no difference can be significant at the 5 % level: p is at least 0.125'
    >>> few_clusters(8)
    'with 8 clusters, fewer than 20, only large differences are detected, and intervals are somewhat too narrow'
    """
    if clusters >= FEW_CLUSTERS or clusters < 2:
        return None
    least = min(1.0, tests * 2.0 ** (1 - clusters))
    if least > LEVEL:
        after = f" after Holm's correction of {tests:,} tests" if tests > 1 else ""
        return (
            f"with {clusters} clusters no difference can be significant at the {100 * LEVEL:g} % level: "
            f"p is at least {least:.3g}{after}"
        )
    return (
        f"with {clusters} clusters, fewer than {FEW_CLUSTERS}, only large differences are detected, "
        "and intervals are somewhat too narrow"
    )

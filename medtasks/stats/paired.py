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
"""Below so many clusters a comparison is not to be trusted (``benchmarks/paired_test.py``, docs/statistics.md)."""
LEVEL = 0.05


@dataclass(frozen=True)
class ClusteredScore:
    """A corpus score and what it is made of: ``sums`` ``(clusters, width)``, clusters in the order of their names.

    ``without`` ``(clusters,)`` are the scores of all but one cluster each; NaN where that leaves nothing to score.
    """

    score: Score
    value: float
    sums: Array
    without: Array


@dataclass(frozen=True)
class PairedDifference:
    """``difference`` = ``first`` - ``second``, in the unit of the score, over so many ``clusters``.

    ``low`` and ``high`` are the ends of its confidence interval. Where ``reason`` says why there can be none of them,
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

    *Test.* If the models do not differ, each cluster's answers could as well be the other model's. Swapping them turns
    the sign of what the cluster adds to the difference: the score with the first model's statistics of this cluster,
    minus the score with the second's, where all other clusters are as the two have them on average. A swap leaves that
    average as it is, so the test of the sum by all its signs (`medtasks.stats.sign_flip_p`) is exact for every score of
    summed statistics, BLEU and chrF as well as means, for any number of clusters of any sizes. For a mean over the same
    items, what a cluster adds is its surplus divided by the items; in general the sum is the difference up to terms of
    third order. For models that are only equal on average it holds with many clusters (Canay, Romano and Shaikh 2017).
    Student's t with a cluster standard error, its rival, calls equal models different in 6 to 9 of 100 comparisons of
    up to 15 unequal clusters. The price: fewer than 6 clusters cannot show anything at the 5 % level.

    *Interval.* ``difference ± t · standard_error``: the jackknife's standard error, each cluster left out once (Efron
    and Tibshirani 1993, chapter 11; MacKinnon, Nielsen and Webb 2023 for few and unequal clusters), and Student's t
    with one degree of freedom less than clusters. It is no inversion of the test: near the limit, and below 6 clusters,
    it may exclude 0 although the test does not reject it. docs/statistics.md has size, power and coverage of both.

    Raises:
        UsageError: the two are not of the same clusters and metric, or the confidence is no level.
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
    """What a reader must know of a comparison of so few clusters, one of ``tests`` that Holm corrects; None of enough.

    >>> few_clusters(4)
    'with 4 clusters no difference can be significant at the 5 % level: p is at least 0.125'
    >>> few_clusters(8)
    'with 8 clusters, fewer than 20, only large differences are found, and intervals are somewhat too short'
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
        f"with {clusters} clusters, fewer than {FEW_CLUSTERS}, only large differences are found, "
        "and intervals are somewhat too short"
    )

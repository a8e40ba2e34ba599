"""Two models on the same samples: the difference of their scores, its interval, and one test for
every metric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from medtasks.core.text import counted
from medtasks.metrics.base import Array, totals
from medtasks.stats.bootstrap import Clusters, Score, cluster_totals
from medtasks.stats.cautions import cautions, comparison_warning, few_clusters
from medtasks.stats.paired_interval import accepted_differences
from medtasks.stats.proportions import jackknife_variance
from medtasks.stats.sign_flips import LEAST_CLUSTERS, sign_flip_p


@dataclass(frozen=True)
class ClusteredScore:
    """A corpus score over some items: ``sums`` ``(clusters, width)``, clusters in the order of
    their names.

    ``without`` ``(clusters,)`` are the scores without each cluster; NaN if nothing is left to
    score. ``weights`` are the observations in each: the denominators of a mean, else items.
    """

    score: Score
    value: float
    items: int
    sums: Array
    without: Array
    weights: Array


class PairedDifference(BaseModel, frozen=True):
    """``difference`` = ``first`` - ``second`` in one metric, in its unit, over items of so many
    clusters.

    ``interval`` is its confidence interval, ``p_value`` that of the cluster sign-flip test,
    ``standard_error`` that of the jackknife; if there are none, ``reason`` says why. ``warning`` is
    about too few clusters and ``cautions``.
    """

    first: float
    second: float
    difference: float
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    items: int
    clusters: int
    reason: str | None = None
    warning: str | None = None
    standard_error: float | None = Field(default=None, exclude=True)
    cautions: tuple[str, ...] = Field(default=(), exclude=True)

    @property
    def low(self) -> float | None:
        return self.interval and self.interval[0]

    @property
    def high(self) -> float | None:
        return self.interval and self.interval[1]


def clustered_score(statistics: Array, clusters: Clusters, score: Score) -> ClusteredScore:
    """A model's score with its sums by cluster, as one side of a paired comparison.

    Args:
        statistics: of the items, ``(n, width)``.
        clusters: the cluster of each item.
        score: computes corpus scores from summed statistics.

    Raises:
        UsageError: shapes do not fit.
        DataError: a statistic is not a finite number.
    """
    table = np.asarray(statistics, dtype=np.float64)
    with_counts = np.column_stack([table, np.ones(len(table))])
    cluster_sums = cluster_totals(with_counts, clusters)
    sums, item_counts = np.ascontiguousarray(cluster_sums[:, :-1]), cluster_sums[:, -1]
    # a mean weighs clusters by its own counts, every other score by the number of items
    is_mean = sums.shape[1] == 2
    return ClusteredScore(
        score=score,
        value=float(score(totals(table))) if len(table) else math.nan,
        items=len(table),
        sums=sums,
        without=score(sums.sum(axis=0) - sums),
        weights=sums[:, 1] if is_mean else item_counts,
    )


def paired_difference(first: ClusteredScore, second: ClusteredScore) -> PairedDifference:
    """Whether two models differ in a corpus score, on the same samples in the same clusters
    (docs/statistics.md).

    *Test.* If the models do not differ, their answers to a cluster are exchangeable. Swapping them
    flips the sign of the cluster's contribution: the score with the first model's statistics of
    this cluster minus the score with the second's, with all other clusters fixed at the average of
    the two models. Swaps leave that average unchanged, so the sign-flip test of the sum
    (`sign_flip_p`) is exact for every score of summed statistics, for any number of clusters of any
    size. For a mean over the same items, a cluster's contribution is its difference divided by the
    number of items; in general the sum is the difference up to terms of third order. For models
    that are equal only on average the test needs many clusters (Canay, Romano and Shaikh 2017).

    *Interval.* The differences that the same test does not reject (`accepted_differences`): it
    contains 0 if and only if the p-value is above 5 %. ``standard_error`` is that of the jackknife
    over clusters, ``sqrt((k - 1)/k · Σ (without - difference)²)`` (Efron and Tibshirani 1993,
    chapter 11). Both sides are of one metric and have the same clusters.
    """
    first, second = with_observations(first, second)
    untested = _untested_difference(first, second)
    if untested.clusters < 2:
        reason = f"found {counted(untested.clusters, 'cluster')}, a comparison needs at least 2"
        return untested.model_copy(update={"reason": reason})
    if not math.isfinite(untested.difference):
        return untested.model_copy(update={"reason": "the score is undefined"})
    return _tested_difference(untested, first, second)


def _untested_difference(first: ClusteredScore, second: ClusteredScore) -> PairedDifference:
    """The difference without interval, test and standard error."""
    clusters = len(first.sums)
    return PairedDifference(
        first=first.value,
        second=second.value,
        difference=first.value - second.value,
        items=first.items,
        clusters=clusters,
        warning=few_clusters(clusters),
    )


def _tested_difference(
    untested: PairedDifference, first: ClusteredScore, second: ClusteredScore
) -> PairedDifference:
    """The difference with interval, test and standard error, or the reason why it has none."""
    clusters, difference = untested.clusters, untested.difference
    contributions = cluster_contributions(first, second)
    without = first.without - second.without
    undefined = np.count_nonzero(~(np.isfinite(contributions) & np.isfinite(without)))
    if undefined:
        reason = f"the score is undefined without {undefined} of {clusters} clusters"
        return untested.model_copy(update={"reason": reason})
    squared_error = float(jackknife_variance(np.array(difference), without))
    p_value = sign_flip_p(contributions)
    shares = _item_shares(first, second)
    interval = accepted_differences(contributions, shares, difference, p_value)
    observed = tuple(cautions(first.sums, second.sums, first.weights, second.weights))
    return untested.model_copy(
        update={
            "interval": interval,
            "p_value": p_value,
            "standard_error": math.sqrt(squared_error),
            "reason": None if interval else f"an interval needs at least {LEAST_CLUSTERS} clusters",
            "cautions": observed,
            "warning": comparison_warning(clusters, observed),
        }
    )


def cluster_contributions(first: ClusteredScore, second: ClusteredScore) -> Array:
    """What each cluster ``(clusters,)`` contributes to the difference of the scores.

    The score with the first model's statistics of the cluster minus the score with the second's,
    all other clusters at the average of the two.
    """
    average = (first.sums + second.sums).sum(axis=0) / 2
    half_difference = (first.sums - second.sums) / 2
    with_first = first.score(average + half_difference)
    with_second = first.score(average - half_difference)
    return with_first - with_second


def _item_shares(first: ClusteredScore, second: ClusteredScore) -> Array:
    """The share ``(clusters,)`` of the observations in each cluster, averaged over both models."""
    first_shares = first.weights / first.weights.sum()
    second_shares = second.weights / second.weights.sum()
    shares: Array = (first_shares + second_shares) / 2
    return shares


def with_observations(
    first: ClusteredScore, second: ClusteredScore
) -> tuple[ClusteredScore, ClusteredScore]:
    """Both sides without the clusters in which neither model has an observation.

    Such a cluster, for instance one without any question that a rate counts, adds nothing to either
    score, and no difference can be assumed in it.
    """
    observed = (first.weights > 0) | (second.weights > 0)
    if observed.all():
        return first, second
    return _at_clusters(first, observed), _at_clusters(second, observed)


def _at_clusters(side: ClusteredScore, chosen: npt.NDArray[np.bool_]) -> ClusteredScore:
    """The side with only the ``chosen`` clusters; its value and items stay."""
    return replace(
        side,
        sums=side.sums[chosen],
        without=side.without[chosen],
        weights=side.weights[chosen],
    )

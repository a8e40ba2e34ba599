"""95 % confidence intervals of single scores, in closed form: no random draws.

docs/statistics.md explains both methods, and has how often they hold the true score
(``performance/coverage.py``):

* `WILSON`, scores between two bounds, such as accuracy, ROUGE-L, BLEU, chrF and judged scores:
  Wilson's interval of a proportion (Wilson 1927) with the effective number of items in clusters,
  and with Student's t instead of the normal distribution (Korn and Graubard 1998; Franco, Little,
  Louis and Slud 2019).
* `STUDENT`, scores without bounds, such as seconds: Student's t with the jackknife's standard
error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from medtasks.metrics.base import Array, segment_sums
from medtasks.stats.bootstrap import TAILS, Clusters, Rows, Score, cluster_codes

WILSON, STUDENT = "wilson-clustered", "t-jackknife"
"""Names of the methods: `interval_method` in ``scores.json``."""

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
BLOCK = 2**20  # statistics in memory at a time
ROUNDING = 1e-12  # a variance below has no digit that is not rounding

Bounds: TypeAlias = "tuple[float, float]"


@dataclass(frozen=True)
class Interval:
    """A 95 % interval and the name of its method; all are None if there is no interval, for the
    given ``reason``.
    """

    low: float | None = None
    high: float | None = None
    method: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ClusteredItems:
    """Statistics ``(n, width)`` of items, those of a cluster next to each other.

    ``begins`` ``(clusters,)`` are the first rows of the clusters, ``sums`` ``(clusters, width)``
    their summed statistics.
    """

    statistics: Array
    begins: Rows
    sums: Array

    @classmethod
    def of(cls, statistics: Array, clusters: Clusters) -> ClusteredItems:
        """Items in any order, with their clusters.

        Raises:
            UsageError: not one cluster per row of statistics.
            DataError: a statistic is not a finite number.
        """
        statistics, codes = cluster_codes(statistics, clusters)
        order = np.argsort(codes, kind="stable")
        ordered = statistics[order]
        begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
        return cls(ordered, begins, segment_sums(ordered, begins))

    @property
    def counted(self) -> ClusteredItems:
        """The items with an observation: a mean's statistics are ``(sum, observations)``."""
        if self.statistics.shape[1] != 2 or self.statistics[:, 1].all():
            return self
        used = np.flatnonzero(self.statistics[:, 1])
        cluster = np.repeat(np.arange(len(self.begins)), self.sizes)[used]
        begins = np.flatnonzero(np.diff(cluster, prepend=-1))
        return ClusteredItems(self.statistics[used], begins, self.sums[cluster[begins]])

    @property
    def sizes(self) -> Rows:
        """Items of each cluster."""
        return np.diff(self.begins, append=len(self.statistics))


def score_interval(
    score: Score, items: ClusteredItems, bounds: Bounds | None, *, is_distance: bool = False
) -> Interval:
    """The 95 % interval of the score of these items.

    A mean of one value per item is that of its values. Any other score is the mean of its items'
    pseudo-values: n times the score minus n - 1 times the score without the item (Tukey 1958; Efron
    and Tibshirani 1993, chapter 11).

    Args:
        score: sums ``(..., width)`` to scores ``(...)``, as `medtasks.metrics.base.Metric.score`.
        items: what is scored.
        bounds: the least and the greatest possible score; None if there are none.
        is_distance: whether the score measures how far something is from 0, as a calibration error.
            Chance alone makes it positive, so the interval reaches down to where that of its square
            by Student's t does.
    """
    items = items.counted
    clusters = len(items.begins)
    if clusters < 2:
        plural = "" if clusters == 1 else "s"
        return Interval(reason=f"found {clusters} cluster{plural}, an interval needs at least 2")
    total = items.sums.sum(axis=0)
    value = float(score(total))
    without = score(total - items.sums)
    if undefined := int(np.count_nonzero(~np.isfinite(without))):
        return Interval(reason=f"the score is undefined without {undefined} of {clusters} clusters")
    if bounds is None or not bounds[0] <= value <= bounds[1]:
        return _by_student(value, without, items.sizes.astype(np.float64))
    values = _values(score, items.statistics, total, value)
    if undefined := int(np.count_nonzero(~np.isfinite(values))):
        return Interval(reason=f"the score is undefined without {undefined} of {len(values)} items")
    least, most = bounds
    shares = (values - least) / (most - least)
    low, high = share_ends(
        np.array((value - least) / (most - least)),
        (without - least) / (most - least),
        np.add.reduceat(shares, items.begins),
        items.sizes.astype(np.float64),
        np.array((shares**2).sum()),
    )
    below, above = (least + (most - least) * float(share) for share in (low, high))
    if is_distance:
        reach = float(
            student(items.sizes.astype(np.float64))
            * jackknife_variance(np.array(value**2), without**2) ** 0.5
        )
        below = min(below, max(0.0, value**2 - reach) ** 0.5)
    # rounding may put an end of a score at one of its bounds beyond it, by 1e-17
    return Interval(max(least, min(below, value)), min(most, max(above, value)), WILSON)


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
    count, clusters = sizes.sum(axis=-1), sizes.shape[-1]
    binomial = value * (1 - value)
    fewer = np.minimum(value, 1 - value) * clusters
    spread = np.maximum(squares / count - value**2, 0.0)
    unseen = _weight_of_assumption(fewer, 1.0)
    relative = unseen + (1 - unseen) * _ratio(spread, binomial)
    assumed = _weight_of_assumption(fewer, ENOUGH)
    observed = intraclass_correlation(sums, sizes, squares)
    correlation = assumed * ASSUMED_CORRELATION + (1 - assumed) * observed
    by_items = relative * np.maximum(1 + (kish_size(sizes) - 1) * correlation, LEAST_EFFECT)
    by_clusters = _ratio(jackknife_variance(value, without) * count, binomial)
    return wilson(value, count / np.maximum(by_items, by_clusters), student(sizes))


def wilson(share: Array, observations: Array, quantile: Array) -> tuple[Array, Array]:
    """Wilson's interval of a proportion ``share`` of so many observations (Wilson 1927).

    >>> low, high = wilson(np.array(0.5), np.array(10.0), np.array(1.959964))
    >>> round(float(low), 4), round(float(high), 4)
    (0.2366, 0.7634)
    """
    added = quantile**2 / observations
    centre = (share + added / 2) / (1 + added)
    reach = np.sqrt(added * (share * (1 - share) + added / 4)) / (1 + added)
    return centre - reach, centre + reach


def kish_size(sizes: Array) -> Array:
    """Items in the cluster of an item drawn at random, ``Σm²/Σm``.

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
    equal = sizes.sum(axis=-1) / kish_size(sizes)
    freedom = np.maximum(np.sqrt(sizes.shape[-1] * equal) - 1, 1.0)
    if freedom.ndim:
        return _quantiles()(freedom, TAILS[1])
    return np.array(_quantile(round(float(freedom), 9)))


def jackknife_variance(value: Array, without: Array) -> Array:
    """Variance ``(...)`` of scores, from the scores ``(..., clusters)`` without each cluster (Efron
    and Tibshirani 1993, chapter 11).
    """
    clusters = without.shape[-1]
    variance: Array = (clusters - 1) / clusters * ((without - value[..., None]) ** 2).sum(axis=-1)
    return variance


def intraclass_correlation(sums: Array, sizes: Array, squares: Array) -> Array:
    """Correlation ``(...)`` of two values of one cluster by the analysis of variance (Donner 1986),
    at most 1.

    Arguments are those of `share_ends`. 0 if nothing varies, and if no cluster has two values.
    """
    count, clusters = sizes.sum(axis=-1), sizes.shape[-1]
    by_cluster = (sums**2 / sizes).sum(axis=-1)
    between = (by_cluster - sums.sum(axis=-1) ** 2 / count) / (clusters - 1)
    within = np.maximum(squares - by_cluster, 0.0) / np.maximum(count - clusters, 1.0)
    typical = (count - kish_size(sizes)) / (clusters - 1)
    correlation = _ratio(between - within, between + (typical - 1) * within)
    return np.where(count > clusters, np.minimum(correlation, 1.0), 0.0)


def _weight_of_assumption(fewer: Array, half: float) -> Array:
    """Weight of an assumption beside ``fewer`` clusters' worth of the rarer kind of answers: 1
    without any, a half at ``half``, then falling with the square.
    """
    weight: Array = 1 / (1 + (fewer / half) ** 2)
    return weight


def _values(score: Score, statistics: Array, total: Array, value: float) -> Array:
    """The value of each item, or its pseudo-value; their mean is the score."""
    if statistics.shape[1] == 2 and (statistics[:, 1] == 1).all():
        return statistics[:, 0]
    count, rows = len(statistics), max(1, BLOCK // statistics.shape[1])
    parts = [score(total - statistics[first : first + rows]) for first in range(0, count, rows)]
    values = count * value - (count - 1) * np.concatenate(parts)
    centred: Array = values - values.mean() + value
    return centred


def _by_student(value: float, without: Array, sizes: Array) -> Interval:
    variance = float(jackknife_variance(np.array(value), without))
    if variance**0.5 <= ROUNDING * abs(value):
        return Interval(reason=f"the score is the same without any of the {len(sizes)} clusters")
    reach = float(student(sizes)) * variance**0.5
    return Interval(value - reach, value + reach, STUDENT)


def _ratio(part: Array, whole: Array) -> Array:
    """``part / whole`` of variances of shares, 0 if the whole is 0 but for rounding."""
    ratio: Array = np.divide(
        part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > ROUNDING
    )
    return ratio


@functools.lru_cache(maxsize=4096)  # thousands of scores of a run have the same clusters
def _quantile(freedom: float) -> float:
    return float(_quantiles()(freedom, TAILS[1]))


def _quantiles() -> Callable[[Array | float, float], Array]:
    from scipy.special import stdtrit  # slow to import

    quantiles: Callable[[Array | float, float], Array] = stdtrit
    return quantiles

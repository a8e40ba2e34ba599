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

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from medtasks.core.text import counted
from medtasks.metrics.base import Array, segment_begins, segment_sums
from medtasks.stats.bootstrap import Clusters, Rows, Score, cluster_codes
from medtasks.stats.proportions import ROUNDING, jackknife_variance, share_ends, student

WILSON, STUDENT = "wilson-clustered", "t-jackknife"
"""Names of the methods: `interval_method` in ``scores.json``."""

STATISTICS_PER_BLOCK = 2**20
"""The most statistics for which scores are computed at a time: 8 MiB, however many items."""

Bounds: TypeAlias = "tuple[float, float]"


@dataclass(frozen=True)
class Interval:
    """A 95 % interval and the name of its method; without an interval all three are None, and
    ``reason`` says why.
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
        begins = segment_begins(codes[order])
        return cls(ordered, begins, segment_sums(ordered, begins))

    @property
    def counted(self) -> ClusteredItems:
        """The items with an observation: a mean's statistics are ``(sum, observations)``."""
        if self.statistics.shape[1] != 2 or self.statistics[:, 1].all():
            return self
        used = np.flatnonzero(self.statistics[:, 1])
        cluster = np.repeat(np.arange(len(self.begins)), self.sizes)[used]
        begins = segment_begins(cluster)
        return ClusteredItems(self.statistics[used], begins, self.sums[cluster[begins]])

    @cached_property
    def sizes(self) -> Rows:
        """Number of items ``(clusters,)`` in each cluster."""
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
        return Interval(
            reason=f"found {counted(clusters, 'cluster')}, an interval needs at least 2"
        )
    total = items.sums.sum(axis=0)
    value = float(score(total))
    without = score(total - items.sums)
    undefined = np.count_nonzero(~np.isfinite(without))
    if undefined:
        return Interval(reason=f"the score is undefined without {undefined} of {clusters} clusters")
    if bounds is None or not bounds[0] <= value <= bounds[1]:
        return _by_student(value, without, items)
    item_values = _item_values(score, items.statistics, total, value)
    undefined = np.count_nonzero(~np.isfinite(item_values))
    if undefined:
        whole = len(item_values)
        return Interval(reason=f"the score is undefined without {undefined} of {whole} items")
    low, high = _by_wilson(value, without, item_values, items, bounds)
    if is_distance:
        low = min(low, _low_end_of_distance(value, without, items))
    # rounding may put an end of a score at one of its bounds beyond it, by 1e-17
    least, most = bounds
    return Interval(max(least, min(low, value)), min(most, max(high, value)), WILSON)


def _item_values(score: Score, statistics: Array, total: Array, value: float) -> Array:
    """Values ``(n,)`` of the items, whose mean is the score: of a plain mean the items' own values,
    of any other score their pseudo-values.
    """
    is_plain_mean = statistics.shape[1] == 2 and (statistics[:, 1] == 1).all()
    if is_plain_mean:
        # the pseudo-values are the values themselves: n·Σx/n - (n - 1)·(Σx - x)/(n - 1) = x
        return statistics[:, 0]
    return _pseudo_values(score, statistics, total, value)


def _pseudo_values(score: Score, statistics: Array, total: Array, value: float) -> Array:
    """The jackknife's pseudo-values ``(n,)`` of the items: ``n·θ - (n - 1)·θ₋ᵢ``, with θ the score
    of all items and θ₋ᵢ the score without item i (Tukey 1958; Efron and Tibshirani 1993, chapter
    11).

    They are shifted so that their mean is θ: the mean of the unshifted ones is the bias-corrected
    score, and intervals are about the reported one.
    """
    count = len(statistics)
    items_per_block = max(1, STATISTICS_PER_BLOCK // statistics.shape[1])
    blocks = []
    for first in range(0, count, items_per_block):
        block = statistics[first : first + items_per_block]
        blocks.append(score(total - block))
    without_item = np.concatenate(blocks)
    pseudo_values = count * value - (count - 1) * without_item
    centred: Array = pseudo_values - pseudo_values.mean() + value
    return centred


def _by_wilson(
    value: float, without: Array, item_values: Array, items: ClusteredItems, bounds: Bounds
) -> tuple[float, float]:
    """Both ends of the interval by `share_ends`, computed on shares of the range between the
    bounds.

    ``without`` are the scores ``(clusters,)`` without each cluster.
    """
    least, most = bounds
    width = most - least
    item_shares = (item_values - least) / width
    low, high = share_ends(
        value=np.array((value - least) / width),
        without=(without - least) / width,
        sums=np.add.reduceat(item_shares, items.begins),
        sizes=items.sizes.astype(np.float64),
        squares=np.array((item_shares**2).sum()),
    )
    return least + width * float(low), least + width * float(high)


def _low_end_of_distance(value: float, without: Array, items: ClusteredItems) -> float:
    """The root of the low end of the squared score's interval ``score² ± t · standard error``, by
    Student's t; 0 if that end is negative.
    """
    squared = value**2
    standard_error = jackknife_variance(np.array(squared), without**2) ** 0.5
    reach = float(student(items.sizes.astype(np.float64)) * standard_error)
    root: float = max(0.0, squared - reach) ** 0.5
    return root


def _by_student(value: float, without: Array, items: ClusteredItems) -> Interval:
    """The interval ``value ± t · standard error`` with the jackknife's standard error over
    clusters.
    """
    standard_error = float(jackknife_variance(np.array(value), without)) ** 0.5
    if standard_error <= ROUNDING * abs(value):
        clusters = len(items.begins)
        return Interval(reason=f"the score is the same without any of the {clusters} clusters")
    reach = float(student(items.sizes.astype(np.float64))) * standard_error
    return Interval(value - reach, value + reach, STUDENT)

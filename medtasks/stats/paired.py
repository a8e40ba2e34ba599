"""Two models on the same samples: the difference of their scores, its interval, and one test for
every metric; and by Student's t the spread of a few repeated runs and the minimum detectable
difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from medtasks.metrics.base import Array, totals
from medtasks.stats.bootstrap import CONFIDENCE, TAILS, Clusters, Score, cluster_totals
from medtasks.stats.cautions import UNEVEN, cautions
from medtasks.stats.sign_flips import sign_flip_p

FEW_CLUSTERS = 20
"""A comparison over fewer clusters carries a warning (``performance/paired_test.py``,
docs/statistics.md).
"""
LEVEL, POWER = 0.05, 0.8
LEAST_CLUSTERS = 6
"""The smallest number of clusters with which a difference can be significant at that level."""
DIGITS = 12
ENUMERATED = 12
"""Every subset of so many clusters is counted for an interval."""


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
    """One side of a comparison, of statistics ``(n, width)``.

    Raises:
        UsageError: shapes do not fit.
        DataError: a statistic is not a finite number.
    """
    table = np.asarray(statistics, dtype=np.float64)
    counted = cluster_totals(np.column_stack([table, np.ones(len(table))]), clusters)
    sums = np.ascontiguousarray(counted[:, :-1])
    value = float(score(totals(table))) if len(table) else math.nan
    weights = sums[:, 1] if sums.shape[1] == 2 else counted[:, -1]
    return ClusteredScore(score, value, len(table), sums, score(sums.sum(axis=0) - sums), weights)


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

    *Interval.* The differences that the same test does not reject (`_accepted`): it contains 0 if
    and only if the p-value is above 5 %. ``standard_error`` is that of the jackknife over clusters
    (Efron and Tibshirani 1993, chapter 11). Both sides are of one metric and have the same
    clusters.
    """
    first, second = with_observations(first, second)
    count = len(first.sums)
    difference = first.value - second.value
    known: dict[str, Any] = {"first": first.value, "second": second.value, "difference": difference}
    made = partial(
        PairedDifference, **known, items=first.items, clusters=count, warning=few_clusters(count)
    )
    if count < 2:
        return made(
            reason=f"found {count} cluster{'s' * (count != 1)}, a comparison needs at least 2"
        )
    middle, half = (first.sums + second.sums).sum(axis=0) / 2, (first.sums - second.sums) / 2
    added = first.score(middle + half) - first.score(middle - half)
    left_out = first.without - second.without
    if not math.isfinite(difference):
        return made(reason="the score is undefined")
    undefined = int(np.count_nonzero(~(np.isfinite(added) & np.isfinite(left_out))))
    if undefined:
        return made(reason=f"the score is undefined without {undefined} of {count} clusters")
    error = math.sqrt((count - 1) / count * float(((left_out - difference) ** 2).sum()))
    p_value = sign_flip_p(added)
    warned = tuple(cautions(first.sums, second.sums, first.weights, second.weights))
    warnings: dict[str, Any] = {"cautions": warned, "warning": comparison_warning(count, warned)}
    weights = first.weights / first.weights.sum() + second.weights / second.weights.sum()
    ends = _accepted(added, weights / 2, difference, p_value)
    reason = None if ends else f"an interval needs at least {LEAST_CLUSTERS} clusters"
    return made(interval=ends, p_value=p_value, standard_error=error, reason=reason, **warnings)


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
    sums, without, weights = side.sums[chosen], side.without[chosen], side.weights[chosen]
    return replace(side, sums=sums, without=without, weights=weights)


def _accepted(
    added: Array, weights: Array, difference: float, p_value: float
) -> tuple[float, float] | None:
    """The smallest and the largest difference that the sign-flip test does not reject; None if it
    rejects none.

    If the true difference is d, a cluster with the share w of the items ``added`` d·w to the
    difference, and what remains is as likely to have the other sign. Changing signs leaves a sum as
    far from 0 if and only if d lies beyond the mean of the clusters that are changed, so d is
    rejected if it lies beyond all but 2.5 % of the means of subsets of clusters. For many clusters
    the sum of random signs is taken to have its normal distribution, corrected for kurtosis
    (Cornish and Fisher 1938).
    """
    clusters = int(np.count_nonzero(weights))
    level = 1 - CONFIDENCE
    if clusters < LEAST_CLUSTERS:
        return None
    total = float(added.sum())
    if total and 0.5 < difference / total < 2:  # a sum of effects is not exactly their joint effect
        added = added * (difference / total)
    means = np.round(added / weights, DIGITS)  # errors of rounding are not beyond 1
    if clusters <= ENUMERATED:
        numbers = np.arange(1, 2**clusters)[
            :, None
        ]  # every subset but the empty one, a row of zeros and ones each
        subsets = (numbers >> np.arange(clusters) & 1).astype(np.float64)
        means = np.sort(np.round((subsets @ added) / (subsets @ weights), DIGITS))
        passed = math.floor(level * 2.0 ** (clusters - 1))
        low, high = float(means[passed - 1]), float(means[-passed])
    else:
        low, high = (_end(added, weights, level, side) for side in (-1, 1))
        low, high = max(low, float(means.min())), min(high, float(means.max()))
    low, high = min(low, difference), max(high, difference)
    if p_value > level:
        return min(low, 0.0), max(high, 0.0)
    least = 1e-9 * abs(difference)  # of a difference that is not 0
    return (max(low, least), high) if difference > 0 else (low, min(high, -least))


def _end(added: Array, weights: Array, level: float, side: int) -> float:
    """Where the sum of what remains is as many standard deviations from 0 as random signs exceed at
    ``level``.
    """
    from scipy.special import ndtri

    quantile = reach = float(ndtri(1 - level / 2))
    total = float(added.sum())
    squares, mixed, spread = (
        float((added**2).sum()),
        float((added * weights).sum()),
        float((weights**2).sum()),
    )
    end = total
    for _ in range(3):
        curve, slope = 1 - reach**2 * spread, total - reach**2 * mixed
        if curve <= 0:  # a few clusters outweigh all others
            return side * math.inf
        end = (
            slope + side * math.sqrt(max(0.0, slope**2 - curve * (total**2 - reach**2 * squares)))
        ) / curve
        left = (added - end * weights) ** 2
        if not left.any():
            break
        kurtosis = -2 * float((left**2).sum()) / float(left.sum()) ** 2
        reach = quantile + (quantile**3 - 3 * quantile) / 24 * kurtosis
    return end


def few_clusters(clusters: int, tests: int = 1) -> str | None:
    """The warning about a comparison over few clusters, one of ``tests`` that Holm corrects; None
    with enough.
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
        f"with {clusters} clusters, fewer than {FEW_CLUSTERS}, only large differences are detected"
    )


def comparison_warning(clusters: int, cautions: Sequence[str], tests: int = 1) -> str | None:
    """All that a reader of a comparison is warned of: few clusters (`few_clusters`), else `UNEVEN`,
    and the rest of its ``cautions``; None without any.
    """
    few = few_clusters(clusters, tests)
    if few is None:
        return "; ".join(cautions) or None
    return "; ".join([few, *(caution for caution in cautions if caution != UNEVEN)])


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values: rejecting those of at most α keeps the chance of any false rejection in
    the table at most α.

    In ascending order, the i-th of m (from 0) is multiplied by ``m - i``, and made at least as
    large as those before it and at most 1 (Holm 1979). None is a test that could not be computed:
    it is kept and ignored.
    """
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted = list(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(made):
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[place] = largest
    return adjusted


def student_quantile(chance: float, freedom: int) -> float:
    """The quantile of Student's t with ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit  # slow to import, as the module's other functions

    return float(stdtrit(freedom, chance))


def student_interval(values: Sequence[float]) -> dict[str, Any]:
    """Mean, sample standard deviation, and the mean's interval by Student's t, of n > 1 values."""
    count = len(values)
    mean = math.fsum(values) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    reach = student_quantile(TAILS[1], count - 1) * deviation / math.sqrt(count)
    return {"mean": mean, "deviation": deviation, "interval": (mean - reach, mean + reach)}


def detectable_difference(standard_error: float, clusters: int) -> float | None:
    """The minimum detectable difference: the smallest true one found at `LEVEL` with probability
    `POWER`.

    ``(t[1 - level/2] + t[power]) · standard_error`` with one fewer degrees of freedom than clusters
    (Bloom 1995), in the unit of the standard error: 3.26 standard errors with 8 clusters, 2.80 with
    very many. It is valid without Holm's correction. None if the smallest p-value, ``2^(1 -
    clusters)``, is above that level.

    >>> round(detectable_difference(1.0, 8), 4)
    3.2607
    """
    if clusters < 2 or math.log2(LEVEL) < 1 - clusters:
        return None
    return (
        sum(student_quantile(chance, clusters - 1) for chance in (1 - LEVEL / 2, POWER))
        * standard_error
    )

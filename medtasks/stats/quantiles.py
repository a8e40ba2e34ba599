"""Quantiles of clustered observations, such as seconds, with confidence intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import TAILS, Clusters, cluster_codes, clustered_standard_error
from medtasks.stats.student import student_quantile


class Estimate(NamedTuple):
    """A value with the ends of its 95 % interval; an end is None if the data do not limit it."""

    value: float
    low: float | None
    high: float | None


def quantile(values: Array, clusters: Clusters, share: float) -> Estimate:
    """The smallest value that at least a ``share`` of the ``values`` do not exceed.

    The interval has the quantiles ``x`` that a test of "a share of the values is below x" does not
    reject (Woodruff 1952; Francisco and Fuller 1991): those between the shares ``share ± t[k - 1] ·
    sqrt(share · (1 - share) · d / n)``. The design effect ``d`` is the variance of the share of
    values up to the estimate with k clusters (:func:`clustered_standard_error`), by that of n
    independent values, and at least 1. It needs no resampling. With few clusters, the percentile
    bootstrap covers a 95th percentile far too rarely, since no resample exceeds the largest value;
    here such an end is None.

    Args:
        values: the observations ``(n,)``, at least one.
        clusters: for each observation its cluster.
        share: a number above 0 and below 1, such as 0.95.

    >>> quantile(np.arange(1.0, 102.0), np.arange(101), 0.5)
    Estimate(value=51.0, low=41.0, high=61.0)
    """
    ordered = np.sort(values)
    count = len(ordered)
    value = float(ordered[_rank(share, count)])
    reached = np.column_stack([values <= value, np.ones(count)])
    statistics, codes = cluster_codes(reached, clusters)
    error = clustered_standard_error(statistics, codes)
    if error is None:
        return Estimate(value, None, None)
    independent = share * (1 - share) / count
    reached_share = float(statistics[:, 0].mean())
    expected = reached_share * (1 - reached_share) / count
    effect = max(1.0, error**2 / expected) if expected else 1.0
    freedom = len(np.unique(codes)) - 1
    reach = student_quantile(TAILS[1], freedom) * math.sqrt(independent * effect)
    low: float | None = None
    high: float | None = None
    if share > reach:
        low = float(ordered[_rank(share - reach, count)])
    if share + reach <= 1:
        high = float(ordered[_rank(share + reach, count)])
    return Estimate(value, low, high)


def _rank(share: float, count: int) -> int:
    """The place of the smallest of ``count`` sorted values that ``share`` of them do not exceed."""
    # a share of .95 of 20 values is 19, not 19.000000000000004
    return max(0, math.ceil(share * count - 1e-9) - 1)


def ratio(totals: Array, amounts: Array, clusters: Clusters) -> Estimate | None:
    """The sum of ``totals`` by the sum of ``amounts``, with its interval; None if that is 0.

    The interval is the ratio ± t[k - 1] standard errors of k clusters
    (:func:`clustered_standard_error`).

    Args:
        totals: such as tokens ``(n,)``.
        amounts: such as seconds ``(n,)``.
        clusters: for each observation its cluster.

    >>> ratio(np.array([10.0, 20.0]), np.array([1.0, 2.0]), ["a", "b"])
    Estimate(value=10.0, low=10.0, high=10.0)
    """
    whole = math.fsum(amounts)
    if not whole:
        return None
    value = math.fsum(totals) / whole
    statistics, codes = cluster_codes(np.column_stack([totals, amounts]), clusters)
    error = clustered_standard_error(statistics, codes)
    if error is None:
        return Estimate(value, None, None)
    freedom = len(np.unique(codes)) - 1
    reach = student_quantile(TAILS[1], freedom) * error
    return Estimate(value, max(0.0, value - reach), value + reach)

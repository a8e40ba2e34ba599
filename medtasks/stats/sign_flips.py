"""Sign-flip tests: how likely a sum is as far from 0 if each difference could have had the other
sign.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array

LEVEL = 0.05
"""A difference is significant if its p-value is at most this."""
LEAST_CLUSTERS = 6
"""The smallest number of clusters with which a difference can be significant at `LEVEL`."""
POINTS = 2**13
"""Sums of one half of the clusters in memory: every test of up to 26 differing clusters is
exact.
"""
FLIP_DIGITS = 9
"""Differences that agree to this many digits of the largest one count as equal: they differ in
rounding only.
"""


def sign_flip_p(differences: Array) -> float:
    """Two-sided p-value of ``|Σ differences|`` where each difference is as likely to have the other
    sign.

    Fisher 1935 (section 21), here with one difference per cluster: the share of the ``2^k`` sign
    assignments to the k differences that are not 0 whose sum is at least as far from 0. For
    differences of -1, 0 and 1 it is the exact McNemar test. All sign assignments are counted for up
    to 26 clusters and, because equal differences are counted together, for most binary scores.
    Beyond that, the share is computed by the saddlepoint approximation (Robinson 1982, formula of
    Lugannani and Rice 1980).

    >>> sign_flip_p(np.array([4.0, 4, 4, 3]))  # 2 of 16: the least with four clusters
    0.125
    """
    scaled = rounded_differences(differences)
    if not scaled.any():
        return 1.0
    sizes, times = np.unique(np.abs(scaled[scaled != 0]), return_counts=True)
    observed = abs(math.fsum(scaled))
    exact = exact_share(sizes, times, observed)
    if exact is not None:
        return min(1.0, exact)
    least = max(2.0 ** (1 - min(int(times.sum()), 1000)), sys.float_info.min)
    return min(1.0, max(least, saddlepoint_share(sizes, times, observed)))


def rounded_differences(differences: Array) -> Array:
    """The differences as shares of the largest, rounded to `FLIP_DIGITS`, so that equal ones are
    equal and a difference that is nothing but rounding is 0.
    """
    largest = float(np.abs(differences).max(initial=0.0))
    if not largest:
        return np.zeros(len(differences))
    return np.round(differences / largest, FLIP_DIGITS)


def signed_rank_p(differences: Array) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test; 1 if all differences are 0.

    Differences of 0 are left out, the others are ranked by their distance from 0, and equal ones
    share the mean of their ranks (Wilcoxon 1945). The statistic is the sum of the signed ranks, so
    its p-value is that of :func:`sign_flip_p`: every sign assignment is counted for up to 26
    differences, also with ties, for which tables and the normal distribution are only approximate.

    >>> signed_rank_p(np.array([1.0, 1, 2, -1, 3]))  # ranks 2, 2, 4, -2, 5: 8 of 32 sign assignments
    0.25
    """
    scaled = rounded_differences(np.asarray(differences, dtype=np.float64))
    scaled = scaled[scaled != 0]
    _, place, times = np.unique(np.abs(scaled), return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(times) - (times - 1) / 2
    return sign_flip_p(np.sign(scaled) * mean_ranks[place])


def exact_share(sizes: Array, times: npt.NDArray[np.int64], observed: float) -> float | None:
    """The share of sign assignments that reach ``|Σ| >= observed``; None if there are too many.

    The clusters are split into two halves; every sum of one half is combined with the sums of the
    other that reach far enough, which are found by bisection (Horowitz and Sahni 1974).

    Args:
        sizes: the distinct sizes ``(sizes,)`` of the differences.
        times: how many differences ``(sizes,)`` are of each size.
        observed: the size of the observed sum.
    """
    if np.log2(times + 1.0).sum() > 2 * math.log2(POINTS):
        return None
    sums = [np.zeros(1), np.zeros(1)]
    chances = [np.ones(1), np.ones(1)]
    for place in np.argsort(-times, kind="stable").tolist():
        size, count = float(sizes[place]), int(times[place])
        half = int(len(sums[0]) > len(sums[1]))
        if len(sums[half]) * (count + 1) > POINTS:
            return None
        flipped = np.arange(count + 1)
        sums[half] = np.add.outer(sums[half], size * (count - 2 * flipped)).ravel()
        chances[half] = np.multiply.outer(chances[half], _coin_chances(count)).ravel()
    order = np.argsort(sums[1], kind="stable")
    sums_reached = sums[1][order]
    chance_from = np.append(np.cumsum(chances[1][order][::-1])[::-1], 0.0)
    slack = 10.0**-FLIP_DIGITS * float((sizes * times).sum())  # ties stay ties despite rounding
    firsts = np.searchsorted(sums_reached, observed - slack - sums[0])
    return 2 * float((chances[0] * chance_from[firsts]).sum())


def _coin_chances(count: int) -> Array:
    """The chances ``(count + 1,)`` of 0, 1, … heads in ``count`` throws of a coin."""
    from scipy.special import gammaln

    heads = np.arange(count + 1)
    if count <= 50:
        ways = [math.comb(count, number) for number in heads.tolist()]
        return np.array(ways) / 2.0**count
    log_ways = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1)
    chances: Array = np.exp(log_ways - count * math.log(2))
    return chances


def saddlepoint_share(sizes: Array, times: npt.NDArray[np.int64], observed: float) -> float:
    """The approximate share of sign assignments that reach ``|Σ| >= observed``.

    With the cumulant generating function ``K(t) = Σ log cosh(t·size)``, the saddlepoint s solves
    ``K'(s) = observed``, and one tail is ``1 - Φ(w) + φ(w)·(1/u - 1/w)`` with ``w = sqrt(2·(s ·
    observed - K(s)))`` and ``u = s·sqrt(K''(s))`` (Lugannani and Rice 1980; Robinson 1982). The
    arguments are those of `exact_share`.
    """
    from scipy.special import ndtr

    if observed >= (1 - 10.0**-FLIP_DIGITS) * float((sizes * times).sum()):
        return 0.0  # all clusters agree: the smallest possible p-value
    steps = sizes / sizes[0]
    is_grid = bool((np.abs(steps - np.round(steps)) < 1e-6 * steps).all())
    if is_grid:  # sums are two of the smallest sizes apart: continuity correction
        observed -= float(sizes[0])
    if observed <= 0:
        return 1.0
    spread = math.sqrt(float((times * sizes**2).sum()))
    size, target = sizes / spread, observed / spread
    point = _saddlepoint(size, times, target)
    tilts = point * size
    decay = np.exp(-2 * tilts)  # log cosh and 1 / cosh², which would overflow, are made of it
    cumulant = float((times * (tilts + np.log1p(decay) - math.log(2))).sum())
    curvature = float((times * size**2 * 4 * decay / (1 + decay) ** 2).sum())
    root = math.sqrt(max(0.0, 2 * (point * target - cumulant)))
    slope = point * math.sqrt(curvature)
    tail = float(ndtr(-root))
    if root > 1e-3:  # below, both terms are the same number, whose difference is rounding
        density = math.exp(-(root**2) / 2) / math.sqrt(2 * math.pi)
        tail += density * (1 / slope - 1 / root)
    return 2 * tail


def _saddlepoint(size: Array, times: npt.NDArray[np.int64], target: float) -> float:
    """The root t of ``Σ size·tanh(t·size) = target``, by Newton's method.

    The function is concave, so from the left each step stays left of the root.
    """
    point = 0.0
    for _ in range(200):
        bend = np.tanh(point * size)
        slope = float((times * size**2 * (1 - bend**2)).sum())
        step = (target - float((times * size * bend).sum())) / slope
        point += step
        if step <= 1e-10 * point:
            break
    return point

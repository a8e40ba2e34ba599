"""Sign-flip tests: p-values of sums of differences, each as likely to have the other sign."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

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

    >>> signed_rank_p(np.array([1.0, 1, 2, -1, 3]))  # ranks 2, 2, 4, -2, 5: 8 of 32 assignments
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
    halves = _sums_of_halves(sizes, times)
    if halves is None:
        return None
    first, second = halves
    order = np.argsort(second.sums, kind="stable")
    # element i: the chance of the i-th smallest sum of the second half, or of a larger one
    chance_from = np.append(np.cumsum(second.chances[order][::-1])[::-1], 0.0)
    slack = 10.0**-FLIP_DIGITS * float((sizes * times).sum())  # ties stay ties despite rounding
    least_partners = np.searchsorted(second.sums[order], observed - slack - first.sums)
    return 2 * float((first.chances * chance_from[least_partners]).sum())


class _SignedSums(NamedTuple):
    """The sums ``(n,)`` of some differences under their sign assignments, and the chance ``(n,)``
    of each.
    """

    sums: Array
    chances: Array

    def extended(self, size: float, count: int) -> _SignedSums:
        """The sums with ``count`` further differences of one ``size``, of which 0, 1, … are
        negative.
        """
        negative = np.arange(count + 1)
        sums = np.add.outer(self.sums, size * (count - 2 * negative)).ravel()
        chances = np.multiply.outer(self.chances, _coin_chances(count)).ravel()
        return _SignedSums(sums, chances)


def _sums_of_halves(
    sizes: Array, times: npt.NDArray[np.int64]
) -> tuple[_SignedSums, _SignedSums] | None:
    """The sums of two halves of the differences, about equally many; None if there are more than
    `POINTS` of a half.
    """
    halves = [_SignedSums(np.zeros(1), np.ones(1)), _SignedSums(np.zeros(1), np.ones(1))]
    for place in np.argsort(-times, kind="stable").tolist():
        size, count = float(sizes[place]), int(times[place])
        smaller = int(len(halves[0].sums) > len(halves[1].sums))
        if len(halves[smaller].sums) * (count + 1) > POINTS:
            return None
        halves[smaller] = halves[smaller].extended(size, count)
    first, second = halves
    return first, second


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
    if observed >= (1 - 10.0**-FLIP_DIGITS) * float((sizes * times).sum()):
        return 0.0  # all clusters agree: the smallest possible p-value
    steps = sizes / sizes[0]
    is_grid = bool((np.abs(steps - np.round(steps)) < 1e-6 * steps).all())
    if is_grid:  # sums are two of the smallest sizes apart: continuity correction
        observed -= float(sizes[0])
    if observed <= 0:
        return 1.0
    spread = math.sqrt(float((times * sizes**2).sum()))
    return 2 * _saddlepoint_tail(sizes / spread, times, observed / spread)


def _saddlepoint_tail(size: Array, times: npt.NDArray[np.int64], target: float) -> float:
    """One tail of `saddlepoint_share`, of differences whose squares sum to 1."""
    from scipy.special import ndtr

    point = _saddlepoint(size, times, target)
    tilts = point * size
    # of cosh x, which would overflow: log cosh x = x + log(1 + e^-2x) - log 2, and
    # 1 / cosh² x = 4 e^-2x / (1 + e^-2x)²
    decay = np.exp(-2 * tilts)
    cumulant = float((times * (tilts + np.log1p(decay) - math.log(2))).sum())
    curvature = float((times * size**2 * 4 * decay / (1 + decay) ** 2).sum())
    w = math.sqrt(max(0.0, 2 * (point * target - cumulant)))
    u = point * math.sqrt(curvature)
    tail = float(ndtr(-w))
    if w > 1e-3:  # below, 1/u and 1/w are equal but for rounding
        density = math.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)
        tail += density * (1 / u - 1 / w)
    return tail


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

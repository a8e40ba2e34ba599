"""The sign-flip test: is a sum of differences, one per cluster, further from 0 than expected by chance?"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array

POINTS = 2**13
"""Sums of one half of the clusters in memory: every test of up to 26 differing clusters is exact."""
DIGITS = 9
"""Differences that agree to this many digits of the largest one count as equal: they differ in rounding only."""

Counts = npt.NDArray[np.int64]


def sign_flip_p(differences: Array) -> float:
    """Two-sided p-value of ``|Σ differences|`` where each difference is as likely to have the other sign.

    Fisher 1935 (section 21), here with one difference per cluster: the share of the ``2^k`` sign assignments to the k
    differences that are not 0 whose sum is at least as far from 0. It is at least ``2^(1 - k)``. For differences of -1,
    0 and 1 it is the exact McNemar test.

    All sign assignments are counted for up to 26 clusters and, because equal differences are counted together, for
    most binary scores of one question per cluster. Beyond that, the share is computed by the saddlepoint approximation
    (Robinson 1982, formula of Lugannani and Rice 1980), which needs no random draws and keeps its relative error in the
    tail: 1 % is typical, 10 % occurs if a few clusters outweigh all others. So p-values can be as small as Holm's
    correction of many comparisons requires.

    Args:
        differences: ``(clusters,)``, finite, in any unit and order.

    >>> sign_flip_p(np.array([4.0, 4, 4, 3]))  # 2 of 16: the least with four clusters
    0.125
    """
    largest = float(np.abs(differences).max(initial=0.0))
    if not largest:
        return 1.0
    scaled = np.round(differences / largest, DIGITS)
    sizes, times = np.unique(np.abs(scaled[scaled != 0]), return_counts=True)
    observed = abs(math.fsum(scaled))
    exact = _exact(sizes, times, observed)
    if exact is not None:
        return min(1.0, exact)
    least = max(2.0 ** (1 - min(int(times.sum()), 1000)), sys.float_info.min)
    return min(1.0, max(least, _saddlepoint(sizes, times, observed)))


def _exact(sizes: Array, times: Counts, observed: float) -> float | None:
    """The share from all sums of two halves of the clusters; None if there are too many."""
    if np.log2(times + 1.0).sum() > 2 * math.log2(POINTS):
        return None
    sums, chances = [np.zeros(1), np.zeros(1)], [np.ones(1), np.ones(1)]
    for place in np.argsort(-times, kind="stable").tolist():
        size, count = float(sizes[place]), int(times[place])
        half = int(len(sums[0]) > len(sums[1]))
        if len(sums[half]) * (count + 1) > POINTS:
            return None
        flipped = np.arange(count + 1)
        sums[half] = np.add.outer(sums[half], size * (count - 2 * flipped)).ravel()
        chances[half] = np.multiply.outer(chances[half], _coins(count)).ravel()
    order = np.argsort(sums[1], kind="stable")
    tail = np.append(np.cumsum(chances[1][order][::-1])[::-1], 0.0)
    slack = 10.0**-DIGITS * float((sizes * times).sum())  # ties stay ties despite rounding
    reached = np.searchsorted(sums[1][order], observed - slack - sums[0])
    return 2 * float((chances[0] * tail[reached]).sum())


def _coins(times: int) -> Array:
    """Chances of 0, 1, …, ``times`` heads."""
    from scipy.special import gammaln

    heads = np.arange(times + 1)
    if times <= 50:
        return np.array([math.comb(times, number) for number in heads.tolist()]) / 2.0**times
    ways = gammaln(times + 1) - gammaln(heads + 1) - gammaln(times - heads + 1)
    chances: Array = np.exp(ways - times * math.log(2))
    return chances


def _saddlepoint(sizes: Array, times: Counts, observed: float) -> float:
    """The approximate share, from the sum's cumulant generating function ``Σ log cosh(t · size)``."""
    from scipy.special import ndtr

    if observed >= (1 - 10.0**-DIGITS) * float((sizes * times).sum()):
        return 0.0  # all clusters agree: the smallest possible p-value
    steps = sizes / sizes[0]
    if (np.abs(steps - np.round(steps)) < 1e-6 * steps).all():
        observed -= float(sizes[0])  # sums lie on a grid, two of the smallest apart: continuity correction
    if observed <= 0:
        return 1.0
    spread = math.sqrt(float((times * sizes**2).sum()))
    size, target = sizes / spread, observed / spread
    point = 0.0
    for _ in range(200):  # Newton's steps on a concave function from the left: each stays left of the root
        bend = np.tanh(point * size)
        slope = float((times * size**2 * (1 - bend**2)).sum())
        step = (target - float((times * size * bend).sum())) / slope
        point += step
        if step <= 1e-10 * point:
            break
    pulled = point * size
    cumulant = float((times * (pulled + np.log1p(np.exp(-2 * pulled)) - math.log(2))).sum())
    curve = float((times * size**2 / np.cosh(pulled) ** 2).sum())
    signed, bent = math.sqrt(max(0.0, 2 * (point * target - cumulant))), point * math.sqrt(curve)
    beyond = float(ndtr(-signed))
    if signed > 1e-3:  # below, both terms are the same number, whose difference is rounding
        beyond += math.exp(-(signed**2) / 2) / math.sqrt(2 * math.pi) * (1 / bent - 1 / signed)
    return 2 * beyond

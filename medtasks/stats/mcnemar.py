"""McNemar's test of two models' right and wrong answers to the same questions, plain and for clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtasks.errors import UsageError
from medtasks.metrics.base import Array

__all__ = ["McNemar", "mcnemar"]

Verdicts = Sequence[bool] | NDArray[np.bool_]


@dataclass(frozen=True)
class McNemar:
    """Questions that only the first or only the second model has right, and the two-sided p-value.

    ``clusters`` counts the clusters that entered; None where answers were taken for independent.
    """

    first_only: int
    second_only: int
    p_value: float
    clusters: int | None = None


def mcnemar(
    first: Verdicts, second: Verdicts, *, clusters: Sequence[str] | None = None, mid_p: bool = False
) -> McNemar:
    """Whether two models are right equally often, from the questions on which they differ.

    Without ``clusters``, McNemar 1947 with the exact binomial distribution: twice the chance of a split as uneven
    as ``first_only : second_only``, at most 1. It takes questions for independent. Several questions about one
    image or patient are not, and then it rejects equal models too often: for such data the paired cluster
    bootstrap (`medtasks.stats.paired`) is the primary test, and this one is its check.

    With ``clusters``, the exact sign-flip test over clusters: under the hypothesis that the two models are
    exchangeable within every cluster, a cluster's surplus ``d`` of questions that only the first has right is as
    likely to be ``-d``, and all 2^k flips of the k clusters are counted (not sampled) in the distribution of their
    sum. Its statistic is Obuchowski's 1998, ``(Σd)² / Σd²``, without her normal approximation; for clusters of one
    question it is the plain test, exactly.

    Args:
        first: n verdicts, true for right.
        second: n verdicts on the same questions in the same order.
        clusters: n cluster names.
        mid_p: count half of the observed split's own chance (Lancaster 1961; Fagerland, Lydersen and Laake 2013):
            less conservative, and its level no longer guaranteed.

    Raises:
        UsageError: lengths differ, or a verdict is neither true (1) nor false (0).
    """
    one, two = _verdicts("first", first), _verdicts("second", second)
    if len(one) != len(two):
        raise UsageError(f"first has {len(one)} verdicts and second {len(two)}, expected the same questions")
    surplus = one.astype(np.int64) - two
    counts = int((surplus > 0).sum()), int((surplus < 0).sum())
    if clusters is None:
        return McNemar(*counts, _flip_p(surplus, mid_p))
    if len(clusters) != len(one):
        raise UsageError(f"{len(clusters)} cluster names for {len(one)} verdicts, expected one name per verdict")
    number = {name: code for code, name in enumerate(sorted(set(clusters)))}
    sums = np.zeros(len(number), dtype=np.int64)
    np.add.at(sums, np.array([number[name] for name in clusters], dtype=np.int64), surplus)
    return McNemar(*counts, _flip_p(sums, mid_p), len(number))


def _flip_p(surplus: NDArray[np.int64], mid_p: bool) -> float:
    """Two-sided p-value of ``Σ surplus`` when each term's sign is a fair coin."""
    sizes, repeats = np.unique(np.abs(surplus[surplus != 0]), return_counts=True)
    # the sum is total - 2·(sizes of the flipped terms): the chance of each such size, terms of one size together
    chances = np.ones(1)
    for size, times in zip(sizes.tolist(), repeats.tolist(), strict=True):
        coins = np.zeros(size * times + 1)
        coins[::size] = _coins(times)
        longer, shorter = (chances, coins) if len(chances) > len(coins) else (coins, chances)
        chances = np.zeros(len(longer) + len(shorter) - 1)
        for place in np.flatnonzero(shorter).tolist():  # a convolution whose order of summation is fixed
            chances[place : place + len(longer)] += shorter[place] * longer
    reached = (int(np.abs(surplus).sum()) - abs(int(surplus.sum()))) // 2
    beyond, equal = float(np.sum(chances[:reached])), float(chances[reached])
    return min(1.0, 2 * (beyond + (equal / 2 if mid_p else equal)))


def _coins(times: int) -> Array:
    """Chances of 0, 1, …, ``times`` heads."""
    from scipy.stats import binom

    chances: Array = binom.pmf(np.arange(times + 1), times, 0.5)
    return chances


def _verdicts(name: str, given: Verdicts) -> NDArray[np.bool_]:
    values: NDArray[Any] = np.asarray(given)
    if values.ndim != 1 or not (values.dtype == bool or not values.size or np.isin(values, (0, 1)).all()):
        raise UsageError(f"{name} has verdicts other than true and false, expected one of them per question")
    return values.astype(bool)

"""The minimum detectable difference of two models, found by simulating studies and their paired test.

A formula has to assume that the test reaches the power of a normal distribution. With few clusters, or a few that hold
most of the items, it does not: the sign-flip test is discrete, and the sum of its differences is far from normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array
from medtasks.stats.paired import LEAST_CLUSTERS, LEVEL, POWER, student_quantile
from medtasks.stats.sign_flips import sign_flip_p

Sizes = npt.NDArray[np.int64]
"""Items by cluster."""

FIRST_STEPS, FIRST_STUDIES = (0.2, 0.35, 0.5, 0.7, 0.9, 1.15, 1.5, 2.0), 100
"""Differences that are tried first, as multiples of the formula's, and simulated studies at each of them."""
STEPS, STUDIES = (0.88, 0.96, 1.04, 1.12), 600
"""The same around the result of the step before."""
MOST_STEPS = 4
"""Steps after the first, each around the result of the one before; mostly one is enough."""
MOST_DRAWS = 2_000_000
"""Clusters drawn at one step, for fewer studies of very many clusters."""
ENOUGH = 150
"""With so many effective clusters the formula is used."""
SEED = 0


class Population(Protocol):
    """How two models' answers vary, from which studies are drawn."""

    @property
    def largest(self) -> float:
        """The largest difference there can be."""
        ...

    def standard_error(self, sizes: Sizes) -> float:
        """That of the difference between two models over clusters of these sizes."""
        ...

    def differences(self, sizes: Sizes, difference: float, draw: np.random.Generator) -> Array:
        """What each cluster contributes to the difference in one study, if the true one is ``difference``."""
        ...


@dataclass(frozen=True)
class RightOrWrong:
    """Two independent models with accuracies around ``score``.

    Each has a rate of its own in each cluster, of a beta distribution whose intraclass correlation is ``icc``.
    """

    score: float
    icc: float
    largest: float = 1.0

    def standard_error(self, sizes: Sizes) -> float:
        """The root of ``2 p (1 - p) / n`` times the design effect ``1 + (Σm²/Σm - 1) icc`` (Kish 1965)."""
        items = int(sizes.sum())
        effect = 1 + (float((sizes**2).sum()) / items - 1) * self.icc
        return math.sqrt(2 * self.score * (1 - self.score) / items * effect)

    def differences(self, sizes: Sizes, difference: float, draw: np.random.Generator) -> Array:
        best = min(1.0, self.score + difference / 2)
        better = max(best, difference)
        first, second = (self._right(sizes, rate, draw) for rate in (better, better - difference))
        differences: Array = (first - second) / sizes.sum()
        return differences

    def _right(self, sizes: Sizes, rate: float, draw: np.random.Generator) -> Array:
        if not 0 < rate < 1:
            return sizes.astype(np.float64) * rate
        rates = np.full(len(sizes), rate)
        if self.icc >= 1:
            rates = (draw.random(len(sizes)) < rate).astype(np.float64)
        elif self.icc > 0:
            both = 1 / self.icc - 1
            rates = draw.beta(rate * both, (1 - rate) * both, len(sizes))
        return draw.binomial(sizes, rates).astype(np.float64)


@dataclass(frozen=True)
class Measured:
    """Two models whose difference varies as in pilot runs.

    The variance of a cluster's sum of differences is ``within · m + between · m²`` with m items. ``residuals`` are the
    pilot's deviations in standard deviations, ``(draws, clusters)``: those of one study are drawn from each row.
    """

    within: float
    between: float
    residuals: tuple[Array, ...]
    largest: float = math.inf

    def standard_error(self, sizes: Sizes) -> float:
        return math.sqrt(float((self._variances(sizes)).sum())) / int(sizes.sum())

    def differences(self, sizes: Sizes, difference: float, draw: np.random.Generator) -> Array:
        standardized = np.zeros(len(sizes))
        for residuals in self.residuals:
            signs = draw.choice([-1.0, 1.0], len(sizes))
            standardized += signs * draw.choice(residuals, len(sizes)) / math.sqrt(len(self.residuals))
        noise = standardized * np.sqrt(self._variances(sizes))
        differences: Array = (difference * sizes + noise) / sizes.sum()
        return differences

    def _variances(self, sizes: Sizes) -> Array:
        items = sizes.astype(np.float64)
        variances: Array = self.within * items + self.between * items**2
        return variances


def formula_difference(population: Population, sizes: Sizes) -> float:
    """``(t[1 - level/2] + t[power]) · standard error``, with one degree of freedom less than clusters (Bloom 1995)."""
    quantiles = (student_quantile(chance, len(sizes) - 1) for chance in (1 - LEVEL / 2, POWER))
    return sum(quantiles) * population.standard_error(sizes)


def simulated_difference(population: Population, sizes: Sizes, seed: int = SEED) -> float | None:
    """The true difference that the paired test finds at `LEVEL` with probability `POWER`; None if it never does.

    Studies are drawn from ``population`` over clusters of these ``sizes``, and tested by `sign_flip_p`, at a few
    differences, first far apart and then close to the one that is found as often. With `ENOUGH` effective
    clusters, ``(Σm)² / Σm²``, the formula is as good.
    """
    if len(sizes) < LEAST_CLUSTERS:
        return None
    formula = formula_difference(population, sizes)
    effective = float(sizes.sum()) ** 2 / float((sizes.astype(np.float64) ** 2).sum())
    if effective >= ENOUGH:
        return formula if formula <= population.largest else None
    draw = np.random.default_rng([seed, len(sizes), int(sizes.sum())])
    most = max(50, MOST_DRAWS // len(sizes))

    def shares_found(steps: Sequence[float], around: float, studies: int) -> tuple[Array, Array]:
        tried = np.unique(np.minimum(around * np.array(steps), population.largest))
        return tried, np.array([_share_found(population, sizes, each, studies, draw) for each in tried.tolist()])

    for scale in (1, 4, 16):
        tried, shares = shares_found(FIRST_STEPS, scale * formula, min(FIRST_STUDIES, most))
        rising = np.maximum.accumulate(shares)
        if rising[-1] >= POWER:
            break
    else:
        return None
    place = int(np.argmax(rising >= POWER))
    between = slice(max(0, place - 1), place + 1)
    result = _crossing(tried[between], rising[between])
    for _ in range(MOST_STEPS):
        tried, shares = shares_found(STEPS, result, min(STUDIES, most))
        result = _crossing(tried, shares)
        if tried[0] <= result <= tried[-1]:
            break
    return result


def _crossing(tried: Array, shares: Array) -> float:
    """Where the straight line through the shares reaches `POWER`, at most a quarter beyond the differences tried."""
    slope, start = np.polyfit(tried, shares, 1) if len(tried) > 1 else (0.0, 0.0)
    lowest, highest = float(tried[0]), float(tried[-1])
    if slope <= 0:
        return lowest if shares.mean() > POWER else highest
    return min(max(float((POWER - start) / slope), 0.75 * lowest), 1.25 * highest)


def _share_found(
    population: Population, sizes: Sizes, difference: float, studies: int, draw: np.random.Generator
) -> float:
    """The share of studies in which the test finds the difference."""
    drawn = (population.differences(sizes, difference, draw) for _ in range(studies))
    return sum(sign_flip_p(differences) <= LEVEL for differences in drawn) / studies

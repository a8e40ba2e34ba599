"""The minimum detectable difference of two models, found by simulating studies and their paired
test.

A formula has to assume that the test reaches the power of a normal distribution. With few clusters,
or a few that hold most of the items, it does not: the sign-flip test is discrete, and the sum of
its differences is far from normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array
from medtasks.stats.sign_flips import LEAST_CLUSTERS, LEVEL, sign_flip_p
from medtasks.stats.student import POWER, student_quantile

Sizes = npt.NDArray[np.int64]
"""Items by cluster."""

FIRST_STEPS, FIRST_STUDIES = (0.2, 0.35, 0.5, 0.7, 0.9, 1.15, 1.5, 2.0), 100
"""Differences that are tried first, as multiples of the formula's, and simulated studies at each of
them.
"""
STEPS, STUDIES = (0.88, 0.96, 1.04, 1.12), 350
"""The same around the result so far, in each of `ROUNDS`."""
ROUNDS = 2
NEAR = (0.8, 1.25)
"""Differences that the result is computed from, as multiples of the result so far."""
MOST_DRAWS = 2_000_000
"""Clusters drawn at one step, for fewer studies of very many clusters."""
ENOUGH = 1000
"""With so many effective clusters the formula is used."""
SEED = 0


class Population(Protocol):
    """How two models' answers vary, from which studies are drawn."""

    @property
    def largest(self) -> float:
        """The largest difference there can be."""
        ...

    def standard_error(self, sizes: Sizes) -> float:
        """The standard error of the difference between two models over clusters of these sizes."""
        ...

    def differences(self, sizes: Sizes, difference: float, draw: np.random.Generator) -> Array:
        """What each cluster contributes to the difference in one simulated study.

        ``difference`` is the true difference between the models.
        """
        ...


@dataclass(frozen=True)
class RightOrWrong:
    """Two independent models with accuracies around ``score``.

    Each has a rate of its own in each cluster, of a beta distribution whose intraclass correlation
    is ``icc``.
    """

    score: float
    icc: float
    largest: float = 1.0

    def standard_error(self, sizes: Sizes) -> float:
        """The standard error of the difference between two models with ``n`` items each.

        It is the root of ``2 p (1 - p) / n`` times the design effect ``1 + (Σm²/Σm - 1) icc`` (Kish
        1965).
        """
        items = int(sizes.sum())
        effect = 1 + (float((sizes**2).sum()) / items - 1) * self.icc
        return math.sqrt(2 * self.score * (1 - self.score) / items * effect)

    def differences(self, sizes: Sizes, difference: float, draw: np.random.Generator) -> Array:
        best = min(1.0, self.score + difference / 2)
        better = max(best, difference)
        first = self._right_answers(sizes, better, draw)
        second = self._right_answers(sizes, better - difference, draw)
        differences: Array = (first - second) / sizes.sum()
        return differences

    def _right_answers(self, sizes: Sizes, rate: float, draw: np.random.Generator) -> Array:
        """The number of right answers in each cluster, drawn for one model of accuracy ``rate``."""
        if not 0 < rate < 1:
            return sizes.astype(np.float64) * rate
        rates = np.full(len(sizes), rate)
        if self.icc >= 1:
            rates = (draw.random(len(sizes)) < rate).astype(np.float64)
        elif self.icc > 0:
            concentration = 1 / self.icc - 1
            rates = draw.beta(rate * concentration, (1 - rate) * concentration, len(sizes))
        return draw.binomial(sizes, rates).astype(np.float64)


@dataclass(frozen=True)
class Measured:
    """Two models whose difference varies as in pilot runs.

    The variance of a cluster's sum of differences is ``within · m + between · m²`` with m items.
    ``residuals`` are the pilot's deviations in standard deviations, ``(draws, clusters)``: those of
    one study are drawn from each row.
    """

    within: float
    between: float
    residuals: tuple[Array, ...]
    largest: float = math.inf

    def standard_error(self, sizes: Sizes) -> float:
        return math.sqrt(float((self._variances(sizes)).sum())) / int(sizes.sum())

    def differences(self, sizes: Sizes, difference: float, draw: np.random.Generator) -> Array:
        models = len(self.residuals)
        standardized = np.zeros(len(sizes))
        for residuals in self.residuals:
            signs = draw.choice([-1.0, 1.0], len(sizes))
            standardized += signs * draw.choice(residuals, len(sizes)) / math.sqrt(models)
        noise = standardized * np.sqrt(self._variances(sizes))
        differences: Array = (difference * sizes + noise) / sizes.sum()
        return differences

    def _variances(self, sizes: Sizes) -> Array:
        items = sizes.astype(np.float64)
        variances: Array = self.within * items + self.between * items**2
        return variances


def formula_difference(population: Population, sizes: Sizes) -> float:
    """The minimum detectable difference by the formula of Bloom (1995).

    It is ``(t[1 - level/2] + t[power]) · standard error``, with one degree of freedom less than
    clusters.
    """
    freedom = len(sizes) - 1
    quantiles = student_quantile(1 - LEVEL / 2, freedom) + student_quantile(POWER, freedom)
    return quantiles * population.standard_error(sizes)


def simulated_difference(
    population: Population, sizes: Sizes, *, studies: int = STUDIES, seed: int = SEED
) -> float | None:
    """The true difference that the paired test detects at `LEVEL` with probability `POWER`.

    None if it never does. With `ENOUGH` effective clusters, ``(Σm)² / Σm²``, the formula is as
    good. With fewer, studies are simulated at a few differences (`_Simulation`): first far apart,
    then close to the one that seems to be detected with this probability.
    """
    if len(sizes) < LEAST_CLUSTERS:
        return None
    formula = formula_difference(population, sizes)
    effective_clusters = float(sizes.sum()) ** 2 / float((sizes.astype(np.float64) ** 2).sum())
    if effective_clusters >= ENOUGH:
        return formula if formula <= population.largest else None
    simulation = _Simulation(population, sizes, seed)
    most_studies = min(studies, max(50, MOST_DRAWS // len(sizes)))
    difference = None
    for scale in (1, 4, 16):
        simulation.run(FIRST_STEPS, scale * formula, min(FIRST_STUDIES, most_studies))
        difference = simulation.smallest_detected()
        if difference is not None:
            break
    if difference is None:
        return None
    for _ in range(ROUNDS):
        simulation.run(STEPS, _crossing(simulation.tried, difference), most_studies)
        difference = _crossing(simulation.tried, difference)
    return difference


class _Simulation:
    """Studies drawn from a population at several true differences, each tested by `sign_flip_p`.

    ``tried`` has the share of studies in which the test detected each difference.
    """

    def __init__(self, population: Population, sizes: Sizes, seed: int) -> None:
        """Prepare studies over clusters of these ``sizes``; equal arguments give equal studies."""
        self._population = population
        self._sizes = sizes
        self._draw = np.random.default_rng([seed, len(sizes), int(sizes.sum())])
        self.tried: list[_Tried] = []

    def run(self, steps: Sequence[float], around: float, studies: int) -> None:
        """Simulate as many studies at each of the ``steps``, which are multiples of ``around``."""
        differences = np.unique(np.minimum(around * np.array(steps), self._population.largest))
        for difference in differences.tolist():
            share = _share_found(self._population, self._sizes, difference, studies, self._draw)
            self.tried.append(_Tried(difference, share, studies))

    def smallest_detected(self) -> float | None:
        """The smallest difference that was detected with probability `POWER`; None without one."""
        detected = [attempt.difference for attempt in self.tried if attempt.share >= POWER]
        return min(detected, default=None)


@dataclass(frozen=True)
class _Tried:
    """The share of so many studies in which the test found the difference."""

    difference: float
    share: float
    studies: int


def _crossing(tried: Sequence[_Tried], around: float) -> float:
    """The true difference that the test would detect with probability `POWER`.

    It is interpolated by a probit regression: a straight line is fitted to the probits of the
    detected shares, weighted by their precision, and solved for the probit of `POWER`. Only
    differences near ``around`` are used, and the result is limited to the same range (`NEAR`).
    ``around`` itself is returned if the line cannot be fitted or does not rise.
    """
    from scipy.special import ndtri

    lowest = around * NEAR[0]
    highest = around * NEAR[1]
    near = [attempt for attempt in tried if lowest <= attempt.difference <= highest]
    below = [attempt for attempt in tried if attempt.difference < lowest]
    if len(near) < 4 and below:
        near.append(max(below, key=lambda attempt: attempt.difference))
    differences = np.array([attempt.difference for attempt in near])
    if len(np.unique(differences)) < 2:
        return around
    studies = np.array([attempt.studies for attempt in near])
    observed = np.array([attempt.share for attempt in near])
    # half a study is added to each outcome: the probits of 0 and 1 are infinite
    shares = (observed * studies + 0.5) / (studies + 1)
    probits = ndtri(shares)
    share_errors = np.sqrt(shares * (1 - shares) / studies)
    # by the delta method; the densities lack a constant factor, which the fit does not depend on
    densities = np.exp(-(probits**2) / 2)
    probit_errors = share_errors / densities
    slope, intercept = np.polyfit(differences, probits, 1, w=1 / probit_errors)
    if slope <= 0:
        return around
    crossing = (ndtri(POWER) - intercept) / slope
    return float(min(max(crossing, lowest), highest))


def _share_found(
    population: Population, sizes: Sizes, difference: float, studies: int, draw: np.random.Generator
) -> float:
    """The share of studies in which the test finds the difference."""
    detected = 0
    for _ in range(studies):
        differences = population.differences(sizes, difference, draw)
        if sign_flip_p(differences) <= LEVEL:
            detected += 1
    return detected / studies

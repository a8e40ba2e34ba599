"""What a plan assumes of two models: from pilot runs, or from published scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

import numpy as np

from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.metrics.registry import get_metric, unit_of

from ..schema.reference import load_reference, place_of
from ..verify.scored_run import ScoredRun
from .pilots import (
    Contributions,
    intraclass_correlation,
    paired_contributions,
    pilot_margin,
    single_contributions,
    variance_components,
)
from .power import STUDIES, Measured, Population, RightOrWrong, Sizes, simulated_difference

ICC = 0.1
"""Assumed correlation of two answers in one cluster, where no pilot run shows it."""


@dataclass(frozen=True)
class Basis:
    """What a plan assumes of two models.

    ``words`` says in a sentence where it is from; differences have to be larger by the factor
    ``margin``, because a pilot's spread is an estimate.
    """

    population: Population
    words: str
    margin: float = 1.0

    def detectable(self, sizes: Sizes, studies: int = STUDIES) -> float | None:
        """The minimum detectable difference (80 % power at level 0.05).

        It is over clusters of these sizes, from so many simulated studies at each difference tried.
        """
        difference = simulated_difference(self.population, sizes, studies=studies)
        if difference is None:
            return None
        return min(self.margin * difference, self.population.largest)


def pilot_basis(task: str, metric: str, first: ScoredRun, second: ScoredRun | None = None) -> Basis:
    """What one or two pilot runs show of the spread of a score.

    With two, it is the spread of their paired difference. With one, the other model is taken to
    vary as much, independently; two models' answers are usually correlated, so this is an upper
    bound.

    Raises:
        UsageError: the runs have no spread of this score.
    """
    if second is not None:
        return basis_of_pair(paired_contributions(first, second, task, metric))
    return basis_of_score(single_contributions(first, task, metric))


def basis_of_pair(clusters: Contributions) -> Basis:
    """The spread of the difference between two pilot runs."""
    return _measured(clusters, 1, "paired difference of the two pilot runs")


def basis_of_score(clusters: Contributions) -> Basis:
    """The spread of two independent models, each as the one of a pilot run."""
    words = (
        "one pilot run; the other model is taken to vary as much, independently (an upper bound)"
    )
    if clusters.right is None:
        return _measured(clusters, 2, words)
    sizes = clusters.sizes
    items = sizes.sum()
    score = float(clusters.right.sum() / items)
    icc = intraclass_correlation(clusters.right, sizes)
    effects = 1 + (sizes - 1) * icc
    standardized = clusters.deviations * items / np.sqrt(sizes * effects)
    # the variance within clusters follows from the score, only that between them is an estimate
    by_clusters = 1 - float(items) / float((sizes * effects).sum())
    margin = 1 + (pilot_margin(standardized) - 1) * by_clusters**2
    words = f"{words}, correlation {icc:.2g} within clusters"
    return Basis(RightOrWrong(score, icc), words, margin)


def _measured(clusters: Contributions, models: int, words: str) -> Basis:
    """The spread of the clusters' contributions, for a number of independent ``models``."""
    sums = clusters.deviations * clusters.sizes.sum()
    components = variance_components(sums, clusters.sizes)
    within = components.within
    between = components.between
    spread = np.sqrt(within * clusters.sizes + between * clusters.sizes.astype(np.float64) ** 2)
    residuals = sums / spread
    residuals /= math.sqrt(float((residuals**2).mean()))
    population = Measured(within * models, between * models, (residuals,) * models)
    return Basis(population, words, pilot_margin(residuals))


def assumed_basis(task: str, metric: str, score: float | None = None, icc: float = ICC) -> Basis:
    """Right and wrong answers of independent models, without a pilot run.

    Args:
        task: a task or group.
        metric: a share of right answers.
        score: the models' accuracy; by default the median of the published ones.
        icc: the correlation of two answers in one cluster.

    Raises:
        UsageError: there is no such score or spread.
    """
    if unit_of(metric) != "fraction" or get_metric(metric).width != 2:
        raise UsageError(
            f"{metric} is not a share of right answers; give a pilot run of {task} (--pilot DIR)."
        )
    source = "the score given"
    if score is None:
        published = _published_scores(task, metric)
        score = median(published)
        source = f"the median of {len(published)} published scores ({score:.3f})"
    if not 0 < score < 1:
        raise UsageError(
            f"--score {score:g}: models that are always right or wrong do not differ; "
            "give one in between."
        )
    words = f"{source}, independent models, correlation {icc:g} within clusters"
    return Basis(RightOrWrong(score, icc), words)


def _published_scores(task: str, metric: str) -> list[float]:
    """The published scores of a task or group; a `UsageError` without any."""
    scores = []
    for figure in load_reference(load_spec(task).benchmark.name).figures:
        if figure.value is not None and place_of(figure) == (task, metric, None, None):
            scores.append(figure.value)
    if not scores:
        raise UsageError(
            f"nothing is published for {metric} of {task}; "
            "give --score or a pilot run (--pilot DIR)."
        )
    return scores

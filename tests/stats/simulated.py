"""Studies in which the truth is known: two models' answers to questions in clusters of unequal
sizes.

Answers about one image (patient, video) are alike: each model has a rate of its own on each
cluster, drawn from a beta distribution whose intraclass correlation is 0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.stats.paired import PairedDifference, clustered_score, paired_difference

ICC = 0.3
EVEN, UNEQUAL, HEAVY, SINGLE = "even", "unequal", "heavy", "single"

Draw = np.random.Generator
Rates = Callable[[Draw, Array], tuple[Array, Array]]
"""Draws both models' rates of clusters of these sizes."""


class Study(NamedTuple):
    """What was found of one comparison, and both models' statistics side by side, ``(clusters, 2 ·
    width)``.
    """

    found: PairedDifference
    sums: Array

    @property
    def rejected(self) -> bool:
        """Whether the test calls the models different at the 5 % level."""
        return self.found.p_value is not None and self.found.p_value <= 0.05

    def covers(self, truth: float) -> bool:
        """Whether the 95 % interval holds the true difference."""
        assert self.found.low is not None
        assert self.found.high is not None
        return self.found.low <= truth <= self.found.high


def studies(
    count: int,
    clusters: int,
    *,
    metric: str = "accuracy",
    sizes: str = UNEQUAL,
    rates: Rates,
    seed: int = 0,
) -> Iterator[Study]:
    """So many studies of so many clusters."""
    draw = np.random.default_rng([seed, clusters])
    names = [f"{number:03d}" for number in range(clusters)]
    score = get_metric(metric).score
    for _ in range(count):
        questions = _sizes(draw, clusters, sizes)
        tables = [_STATISTICS[metric](draw, questions, each) for each in rates(draw, questions)]
        one, two = (clustered_score(table, names, score) for table in tables)
        yield Study(paired_difference(one, two), np.hstack(tables))


def _sizes(draw: Draw, clusters: int, kind: str) -> Array:
    """Questions per cluster: 8 each; 9 on average, mostly fewer; log-normal, some hundred; or one
    each.
    """
    if kind == EVEN:
        return np.full(clusters, 8)
    if kind == UNEQUAL:
        return 1 + draw.geometric(1 / 8, clusters)
    if kind == HEAVY:
        return np.ceil(draw.lognormal(1.5, 1.2, clusters))
    return np.ones(clusters)


def alike(rate: float = 0.6) -> Rates:
    """Two equal models: rates of the same distribution."""
    return apart(rate, rate)


def apart(first: float, second: float) -> Rates:
    """Two models with these mean rates."""
    return lambda draw, sizes: (_beta(draw, first, len(sizes)), _beta(draw, second, len(sizes)))


def skewed(draw: Draw, sizes: Array) -> tuple[Array, Array]:
    """Equal on average: the first is far better on one cluster in seven, and a little worse on the
    others.
    """
    rare = draw.random(len(sizes)) < 0.15
    return 0.6 + np.where(rare, 0.35, -0.35 * 0.15 / 0.85), np.full(len(sizes), 0.6)


def by_size(draw: Draw, sizes: Array) -> tuple[Array, Array]:  # noqa: ARG001
    """Equal on average over the questions: the first is better on clusters of 16 and more
    questions, if sizes are `UNEQUAL`, and worse on the others.
    """
    chance = (7 / 8) ** 14  # of 1 + geometric(1/8) to be 16 or more
    inside = chance * (15 + 8)  # questions in such clusters, of 9 questions per cluster
    return 0.6 + np.where(sizes >= 16, 0.2, -0.2 * inside / (9 - inside)), np.full(len(sizes), 0.6)


def _beta(draw: Draw, mean: float, clusters: int) -> Array:
    both = 1 / ICC - 1
    found: Array = draw.beta(mean * both, (1 - mean) * both, clusters)
    return found


def _accuracy(draw: Draw, questions: Array, rates: Array) -> Array:
    return np.column_stack([draw.binomial(questions.astype(int), rates), questions]).astype(float)


def _bleu(draw: Draw, questions: Array, rates: Array) -> Array:
    """Lengths and matched and possible n-grams of texts of 4 to 15 tokens."""
    cluster = np.repeat(np.arange(len(questions)), questions.astype(int))
    tokens, wanted = draw.integers(4, 16, (2, len(cluster)))
    possible = np.column_stack([tokens - order for order in range(4)])
    chances = rates[cluster][:, None] ** np.array([0.7, 1, 1.3, 1.6])
    rows = np.column_stack([tokens, wanted, draw.binomial(possible, chances), possible])
    return _summed(rows, cluster, len(questions))


def _chrf(draw: Draw, questions: Array, rates: Array) -> Array:
    """For each order n-grams of both texts, of 10 to 60 characters, and those that match."""
    cluster = np.repeat(np.arange(len(questions)), questions.astype(int))
    lengths = draw.integers(10, 61, (2, len(cluster)))
    columns = []
    for order in range(6):
        one, two = lengths - order
        columns += [
            one,
            two,
            draw.binomial(np.minimum(one, two), rates[cluster] ** (0.5 + 0.3 * order)),
        ]
    return _summed(np.column_stack(columns), cluster, len(questions))


def _summed(rows: Array, cluster: Array, clusters: int) -> Array:
    found = np.zeros((clusters, rows.shape[1]))
    np.add.at(found, cluster, rows)
    return found


_STATISTICS: dict[str, Callable[[Draw, Array, Array], Array]] = {
    "accuracy": _accuracy,
    "bleu": _bleu,
    "chrf": _chrf,
}

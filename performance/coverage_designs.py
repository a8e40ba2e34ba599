"""Simulated benchmarks for coverage: sizes of clusters, and answers that are correlated within
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.stats.bootstrap import Score
from medtasks.stats.intervals import Bounds, ClusteredItems, score_interval

Draw = np.random.Generator
Integers = npt.NDArray[np.int64]

SIZES: dict[str, Callable[[Draw, int], Integers]] = {
    "one question each": lambda _, clusters: np.ones(clusters, dtype=np.int64),
    "nine each": lambda _, clusters: np.full(clusters, 9),
    "unequal, nine on average": lambda draw, clusters: 1 + draw.geometric(1 / 8, clusters),
    "log-normal": lambda draw, clusters: np.ceil(draw.lognormal(1.5, 1.2, clusters)).astype(
        np.int64
    ),
    "one has half of all": lambda _, clusters: np.array(
        [9 * (clusters - 1)] + [9] * (clusters - 1)
    ),
}
"""Questions per cluster by design. The log-normal sizes are 9 on average, and a few clusters hold
most questions.
"""


def generator(*key: int | str | float) -> Draw:
    """Random numbers of one cell of a table: the same in every run, and others than those of its
    neighbours.
    """
    numbers = [
        int.from_bytes(part.encode()[:8], "big") if isinstance(part, str) else int(1000 * part)
        for part in key
    ]
    return np.random.default_rng(numbers)


def rates_of(draw: Draw, mean: float, correlation: float, shape: int | tuple[int, int]) -> Array:
    """The chance of a right answer in each cluster: beta-distributed, so that two answers of a
    cluster have this intraclass correlation.
    """
    if correlation == 0:
        return np.full(shape, mean)
    both = 1 / correlation - 1
    rates: Array = draw.beta(mean * both, (1 - mean) * both, shape)
    return rates


@dataclass(frozen=True)
class Text:
    """A score of texts: its statistics are drawn from the ``rates`` of the clusters that its items
    belong to.
    """

    name: str
    score: Score
    bounds: Bounds
    rows: Callable[[Draw, Array], Array]

    def truth(self, mean: float, correlation: float, rows: int = 1_000_000) -> float:
        """The score of very many items, each in a cluster of its own."""
        draw = generator(self.name, mean, correlation)
        return float(
            self.score(self.rows(draw, rates_of(draw, mean, correlation, rows)).sum(axis=0))
        )

    def covers(
        self, draw: Draw, sizes: Integers, mean: float, correlation: float, truth: float
    ) -> bool:
        """Whether the interval of one simulated study holds the truth."""
        rates = rates_of(draw, mean, correlation, len(sizes))
        clusters = np.repeat(np.arange(len(sizes)), sizes)
        items = ClusteredItems.of(self.rows(draw, rates[clusters]), clusters)
        interval = score_interval(self.score, items, self.bounds)
        return (
            interval.low is not None
            and interval.high is not None
            and interval.low <= truth <= interval.high
        )


def _rouge(draw: Draw, rates: Array) -> Array:
    """F1 of texts of 3 to 12 tokens."""
    predicted, expected = draw.integers(3, 13, (2, len(rates)))
    common = draw.binomial(np.minimum(predicted, expected), rates)
    return np.column_stack([2 * common / (predicted + expected), np.ones(len(rates))])


def _judged(draw: Draw, rates: Array) -> Array:
    """Ten points of a judge, in percent; an answer tends to get most of them or few."""
    chance = draw.beta(2 * rates + 0.05, 2 * (1 - rates) + 0.05)
    return np.column_stack([10.0 * draw.binomial(10, chance), np.ones(len(rates))])


def _bleu(draw: Draw, rates: Array) -> Array:
    """Texts of 4 to 15 tokens, one token shorter than their references on average."""
    tokens = draw.integers(4, 16, len(rates))
    expected = tokens + draw.integers(-2, 5, len(rates))
    possible = np.column_stack([tokens - order for order in range(4)])
    matched = draw.binomial(possible, rates[:, None] ** np.array([0.7, 1, 1.3, 1.6]))
    return np.column_stack([tokens, expected, matched, possible]).astype(np.float64)


def _chrf(draw: Draw, rates: Array) -> Array:
    """Texts of 10 to 60 characters."""
    lengths = draw.integers(10, 61, (2, len(rates)))
    columns = []
    for order in range(6):
        predicted, expected = lengths - order
        matched = draw.binomial(np.minimum(predicted, expected), rates ** (0.5 + 0.3 * order))
        columns += [predicted, expected, matched]
    return np.column_stack(columns).astype(np.float64)


TEXTS = (
    Text("ROUGE-L", get_metric("rougeL").score, (0.0, 1.0), _rouge),
    Text("judged score", get_metric("open_total").score, (0.0, 100.0), _judged),
    Text("BLEU", get_metric("bleu").score, (0.0, 1.0), _bleu),
    Text("chrF", get_metric("chrf").score, (0.0, 100.0), _chrf),
)

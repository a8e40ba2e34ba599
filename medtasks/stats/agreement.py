"""Agreement between raters (judges, humans) beyond chance, with intervals from a cluster
bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.core.schema import Frozen
from medtasks.stats.bootstrap import TAILS, cluster_draws

Integers: TypeAlias = npt.NDArray[np.int64]

ONE_CATEGORY = "all ratings are of one category, so agreement beyond chance is undefined"


@dataclass(frozen=True)
class Ratings:
    """Ratings of items, as positions in the sorted ``scale``: ``codes`` ``(raters, items)`` are -1
    for a missing one.

    ``counts`` says how often each item is taken.
    """

    codes: Integers
    scale: tuple[float, ...]
    counts: Integers

    @classmethod
    def of(cls, rows: Sequence[Sequence[float | None]]) -> Ratings:
        """Each rater's scores of the same items, all on one scale; None for a missing rating."""
        scale = tuple(sorted({score for row in rows for score in row if score is not None}))
        position: dict[float | None, int] = {None: -1} | {
            score: number for number, score in enumerate(scale)
        }
        codes = np.array([[position[score] for score in row] for row in rows], dtype=np.int64)
        return cls(codes, scale, np.ones(codes.shape[1], dtype=np.int64))

    @property
    def items(self) -> int:
        return int(self.counts.sum())

    def per_item(self) -> Integers:
        """How many raters gave each score, ``(items, scores)``."""
        numbers = np.zeros((len(self.counts), len(self.scale)), dtype=np.int64)
        for codes in self.codes:
            rated = np.flatnonzero(codes >= 0)
            numbers[rated, codes[rated]] += 1
        return numbers


Statistic = Callable[[Ratings], "float | str"]
"""A coefficient, or why it is undefined."""


def raw_agreement(ratings: Ratings) -> float:
    """Share of items to which two raters gave the same score."""
    return int(ratings.counts[ratings.codes[0] == ratings.codes[1]].sum()) / ratings.items


def cohen_kappa(ratings: Ratings, *, quadratic: bool = False) -> float | str:
    """Cohen's kappa of two raters who rated every item, ``1 - Σ w·observed / Σ w·expected`` over
    pairs of categories.

    Cohen 1960 (w = 1 off the diagonal) and, if ``quadratic``, 1968: w is the squared distance on
    the scale, so an unused level still counts as a step.
    """
    size = len(ratings.scale)
    table = np.zeros((size, size), dtype=np.int64)
    np.add.at(table, tuple(ratings.codes), ratings.counts)
    distances = _squared(ratings.scale) if quadratic else 1 - np.eye(size)
    chance = _sum(distances * np.multiply.outer(table.sum(axis=1), table.sum(axis=0)))
    return 1 - ratings.items * _sum(distances * table) / chance if chance else ONE_CATEGORY


def fleiss_kappa(ratings: Ratings) -> float | str:
    """Fleiss' kappa of two or more raters who rated every item in unordered categories, ``(P - P_e)
    / (1 - P_e)``.

    P is the share of agreeing pairs of raters, averaged over items; P_e the sum of squared category
    shares (Fleiss 1971). Computed on integers as ``1 - (1 - P) / (1 - P_e)``.
    """
    raters, per_item = len(ratings.codes), ratings.per_item()
    disagreeing = int(np.sum(ratings.counts * (raters**2 - np.sum(per_item**2, axis=1))))
    used = [int(number) for number in np.einsum("i,ic->c", ratings.counts, per_item)]
    total = ratings.items * raters
    chance = total**2 - sum(number**2 for number in used)
    return 1 - disagreeing * total / ((raters - 1) * chance) if chance else ONE_CATEGORY


def krippendorff_alpha(ratings: Ratings, level: Literal["nominal", "ordinal"]) -> float | str:
    """Krippendorff's alpha, ``1 - D_o / D_e``, of raters who may have left out ratings; each item
    has at least two.

    ``D_o`` is the mean squared difference of ratings of one item, ``D_e`` that of any two ratings,
    by the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").
    Squared differences: 1 (nominal), or that of the mid-ranks among the ratings (ordinal). Memory
    grows with the square of the number of distinct scores.
    """
    per_item = ratings.per_item()
    rated = per_item.sum(axis=1)
    observed = np.zeros((len(ratings.scale),) * 2)
    for number in np.unique(
        rated
    ):  # integers within each number of raters, so that item order cannot matter
        rows, times = per_item[rated == number], ratings.counts[rated == number]
        pairs = np.einsum("i,ic,ik->ck", times, rows, rows) - np.diag(
            np.einsum("i,ic->c", times, rows)
        )
        observed += pairs / (number - 1)
    used = np.einsum("i,ic->c", ratings.counts, per_item)
    squared = 1 - np.eye(len(used)) if level == "nominal" else _squared(2 * np.cumsum(used) - used)
    chance = _sum(squared * np.multiply.outer(used, used))
    return 1 - (int(used.sum()) - 1) * _sum(squared * observed) / chance if chance else ONE_CATEGORY


def spearman(ratings: Ratings) -> float | str:
    """Spearman's rank correlation of two raters who rated every item: Pearson's of the mid-ranks
    (Spearman 1904).

    As ``scipy.stats.spearmanr``, but on integers (doubled, centred ranks), so that no order changes
    the last digit.
    """
    items, ranks = ratings.items, []
    if items < 2:
        return f"{items} item{'s' * (items != 1)} rated by both, a correlation needs at least 2"
    for codes in ratings.codes:
        used = np.zeros(len(ratings.scale), dtype=np.int64)
        np.add.at(used, codes, ratings.counts)
        ranks.append((2 * np.cumsum(used) - used - items)[codes])
    one, two = ranks
    spread = int(np.sum(ratings.counts * one**2)) * int(np.sum(ratings.counts * two**2))
    if not spread:
        return "a rater gave every item the same rating, so ranks cannot be compared"
    shared = int(np.sum(ratings.counts * one * two))
    return math.copysign(math.sqrt(shared**2 / spread), shared)


class Coefficient(Frozen):
    """A measure of agreement of so many items, and its percentile interval; what is undefined is
    None, for the given ``reason``.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    units: int
    reason: str | None = None


def agreement_interval(
    ratings: Ratings,
    statistic: Statistic,
    clusters: Sequence[str],
    resamples: int = 1000,
    seed: int = 0,
) -> Coefficient:
    """A coefficient with its percentile interval under resampling of the items' clusters with
    replacement.

    Raters are fixed, items are drawn by whole clusters (image, patient): the draws of
    `medtasks.stats.bootstrap.joint_resamples` for the same clusters and seed (Davison and Hinkley
    1997, section 3.8). Items with equal ratings are counted together, so ``statistic`` sees each
    distinct column once. The result does not depend on the order of the items.

    A percentile interval is not centred: if the coefficient is strongly biased (few clusters,
    values near 1) it may be entirely on one side of the value.
    """
    codes, kind_of = np.unique(ratings.codes, axis=1, return_inverse=True)

    def value_of(weights: npt.NDArray[np.float64] | None) -> float | str:
        counts = np.bincount(kind_of, weights=weights, minlength=codes.shape[1]).astype(np.int64)
        return statistic(replace(ratings, codes=codes, counts=counts))

    value, items = value_of(None), ratings.items
    if isinstance(value, str):
        return Coefficient(units=items, reason=value)
    made = partial(Coefficient, value=value, units=items)
    names, cluster_of = np.unique([*clusters], return_inverse=True)
    if len(names) < 2:
        return made(reason=f"found {len(names)} cluster, an interval needs at least 2")
    drawn = [
        value_of(row[cluster_of])
        for block in cluster_draws(len(names), resamples, seed)
        for row in block
    ]
    defined = [one for one in drawn if not isinstance(one, str)]
    if len(defined) < resamples:
        return made(
            reason=f"the agreement is undefined in {resamples - len(defined)} of {resamples} resamples"
        )
    low, high = np.quantile(defined, TAILS).tolist()
    return made(low=low, high=high)


def _squared(scale: Sequence[float] | Integers) -> npt.NDArray[np.float64]:
    """Squared distances on a scale, as shares of the largest."""
    numbers = np.array(scale, dtype=np.float64)
    distances = np.subtract.outer(numbers, numbers)
    squared: npt.NDArray[np.float64] = (distances / (distances.max() or 1)) ** 2
    return squared


def _sum(values: npt.NDArray[np.float64]) -> float:
    """Correctly rounded, so that the order of raters and scores does not matter."""
    return math.fsum(values.ravel())

"""Agreement between raters (judges, humans) beyond chance, with intervals from a cluster bootstrap.

scipy and nltk have some of these coefficients. They are computed here because items have counts:
a resample only changes how often each distinct column of ratings is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.core.schema import Frozen
from medtasks.core.text import counted
from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import TAILS, cluster_draws

Integers: TypeAlias = npt.NDArray[np.int64]

ONE_CATEGORY = "all ratings are of one category, so agreement beyond chance is undefined"


@dataclass(frozen=True)
class Ratings:
    """Ratings of items by several raters.

    ``codes`` ``(raters, items)`` are positions in the sorted ``scale``, -1 for a missing rating;
    ``counts`` ``(items,)`` says how often each item is taken.
    """

    codes: Integers
    scale: tuple[float, ...]
    counts: Integers

    @classmethod
    def of(cls, rows: Sequence[Sequence[float | None]]) -> Ratings:
        """Each rater's scores of the same items, all on one scale; None for a missing rating."""
        scores: set[float] = set()
        for row in rows:
            scores.update(score for score in row if score is not None)
        scale = tuple(sorted(scores))
        positions: dict[float | None, int] = {None: -1}
        for position, score in enumerate(scale):
            positions[score] = position
        codes = np.array([[positions[score] for score in row] for row in rows], dtype=np.int64)
        return cls(codes, scale, np.ones(codes.shape[1], dtype=np.int64))

    @property
    def items(self) -> int:
        return int(self.counts.sum())

    def per_item(self) -> Integers:
        """How many raters gave each score to each item, ``(items, scores)``."""
        raters = np.zeros((len(self.counts), len(self.scale)), dtype=np.int64)
        for codes in self.codes:
            rated = np.flatnonzero(codes >= 0)
            raters[rated, codes[rated]] += 1
        return raters

    def totals(self) -> Integers:
        """How often each score was given, ``(scores,)``."""
        totals: Integers = np.einsum("i,ic->c", self.counts, self.per_item())
        return totals


Statistic = Callable[[Ratings], "float | str"]
"""A coefficient, or why it is undefined."""


def raw_agreement(ratings: Ratings) -> float:
    """Share of items to which two raters gave the same score."""
    first, second = ratings.codes
    return int(ratings.counts[first == second].sum()) / ratings.items


def cohen_kappa(ratings: Ratings, *, quadratic: bool = False) -> float | str:
    """Cohen's kappa of two raters who rated every item, ``1 - Σ w·observed / Σ w·expected`` over
    pairs of categories.

    Cohen 1960 (w = 1 off the diagonal) and, if ``quadratic``, 1968: w is the squared distance on
    the scale, so an unused level still counts as a step.
    """
    size = len(ratings.scale)
    observed = np.zeros((size, size), dtype=np.int64)
    np.add.at(observed, tuple(ratings.codes), ratings.counts)
    first_totals, second_totals = observed.sum(axis=1), observed.sum(axis=0)
    expected = np.multiply.outer(first_totals, second_totals)  # times the number of items
    weights = _squared_distances(ratings.scale) if quadratic else 1 - np.eye(size)
    chance = _exact_sum(weights * expected)
    if not chance:
        return ONE_CATEGORY
    return 1 - ratings.items * _exact_sum(weights * observed) / chance


def fleiss_kappa(ratings: Ratings) -> float | str:
    """Fleiss' kappa of two or more raters who rated every item in unordered categories, ``(P - P_e)
    / (1 - P_e)``.

    P is the share of agreeing pairs of raters, averaged over items; P_e the sum of squared category
    shares (Fleiss 1971). Computed on integers as ``1 - (1 - P) / (1 - P_e)``.
    """
    raters, per_item = len(ratings.codes), ratings.per_item()
    disagreeing_pairs = raters**2 - np.sum(per_item**2, axis=1)  # (items,), each pair twice
    disagreeing = int(np.sum(ratings.counts * disagreeing_pairs))
    total = ratings.items * raters
    chance = total**2 - sum(int(count) ** 2 for count in ratings.totals())
    if not chance:
        return ONE_CATEGORY
    return 1 - disagreeing * total / ((raters - 1) * chance)


def krippendorff_alpha(ratings: Ratings, level: Literal["nominal", "ordinal"]) -> float | str:
    """Krippendorff's alpha, ``1 - D_o / D_e``, of raters who may have left out ratings; each item
    has at least two.

    ``D_o`` is the mean squared difference of ratings of one item, ``D_e`` that of any two ratings,
    by the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").
    Squared differences: 1 (nominal), or that of the mid-ranks among the ratings (ordinal). Memory
    grows with the square of the number of distinct scores.
    """
    totals = ratings.totals()
    squared_differences = 1 - np.eye(len(totals))
    if level == "ordinal":
        squared_differences = _squared_distances(_doubled_mid_ranks(totals))
    chance = _exact_sum(squared_differences * np.multiply.outer(totals, totals))
    if not chance:
        return ONE_CATEGORY
    observed = _exact_sum(squared_differences * _coincidences(ratings))
    return 1 - (int(totals.sum()) - 1) * observed / chance


def _coincidences(ratings: Ratings) -> Array:
    """The coincidence matrix ``(scores, scores)``: pairs of ratings of one item, each with the
    weight 1 / (ratings of the item - 1).
    """
    per_item = ratings.per_item()
    rated = per_item.sum(axis=1)
    coincidences = np.zeros((len(ratings.scale),) * 2)
    # integers within each number of raters, so that item order cannot matter
    for raters in np.unique(rated):
        rows, counts = per_item[rated == raters], ratings.counts[rated == raters]
        pairs = np.einsum("i,ic,ik->ck", counts, rows, rows)
        with_itself = np.diag(np.einsum("i,ic->c", counts, rows))
        coincidences += (pairs - with_itself) / (raters - 1)
    return coincidences


def spearman(ratings: Ratings) -> float | str:
    """Spearman's rank correlation of two raters who rated every item: Pearson's of the mid-ranks
    (Spearman 1904).

    As ``scipy.stats.spearmanr``, but with counts, and on integers (doubled, centred ranks), so that
    no order changes the last digit.
    """
    items, counts = ratings.items, ratings.counts
    if items < 2:
        return f"{counted(items, 'item')} rated by both, a correlation needs at least 2"
    first, second = (_centred_ranks(codes, ratings) for codes in ratings.codes)
    first_squares = int(np.sum(counts * first**2))
    second_squares = int(np.sum(counts * second**2))
    if not first_squares * second_squares:
        return "a rater gave every item the same rating, so ranks cannot be compared"
    products = int(np.sum(counts * first * second))
    squared_correlation = products**2 / (first_squares * second_squares)
    return math.copysign(math.sqrt(squared_correlation), products)


def _centred_ranks(codes: Integers, ratings: Ratings) -> Integers:
    """Twice the mid-rank ``(items,)`` of each rating of a rater, minus its mean."""
    totals = np.zeros(len(ratings.scale), dtype=np.int64)
    np.add.at(totals, codes, ratings.counts)
    centred: Integers = (_doubled_mid_ranks(totals) - ratings.items)[codes]
    return centred


def _doubled_mid_ranks(totals: Integers) -> Integers:
    """Twice the mid-rank of each score (from 0), ``(scores,)``, if given so often: an integer."""
    return 2 * np.cumsum(totals) - totals


class Coefficient(Frozen):
    """A measure of agreement of so many items, and its percentile interval; what is undefined is
    None, and ``reason`` says why.
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
    items = ratings.items
    distinct, column_of = _distinct_columns(ratings)
    value = statistic(distinct)
    if isinstance(value, str):
        return Coefficient(units=items, reason=value)
    names, cluster_of = np.unique([*clusters], return_inverse=True)
    if len(names) < 2:
        reason = f"found {len(names)} cluster, an interval needs at least 2"
        return Coefficient(value=value, units=items, reason=reason)
    resampled = []
    for drawn in cluster_draws(len(names), resamples, seed):
        for cluster_counts in drawn:
            counts = _column_counts(cluster_counts[cluster_of], column_of, distinct)
            coefficient = statistic(replace(distinct, counts=counts))
            if not isinstance(coefficient, str):
                resampled.append(coefficient)
    undefined = resamples - len(resampled)
    if undefined:
        reason = f"the agreement is undefined in {undefined} of {resamples} resamples"
        return Coefficient(value=value, units=items, reason=reason)
    low, high = np.quantile(resampled, TAILS).tolist()
    return Coefficient(value=value, low=low, high=high, units=items)


def _distinct_columns(ratings: Ratings) -> tuple[Ratings, Integers]:
    """The distinct columns of ratings with their counts, and the column ``(items,)`` of each
    item.
    """
    codes, column_of = np.unique(ratings.codes, axis=1, return_inverse=True)
    counts = np.bincount(column_of, minlength=codes.shape[1])
    return replace(ratings, codes=codes, counts=counts), column_of


def _column_counts(item_counts: Array, column_of: Integers, distinct: Ratings) -> Integers:
    """How often each distinct column is taken if the items are taken so often."""
    columns = len(distinct.counts)
    return np.bincount(column_of, weights=item_counts, minlength=columns).astype(np.int64)


def _squared_distances(scale: Sequence[float] | Integers) -> Array:
    """Squared distances ``(scores, scores)`` on a scale, as shares of the largest."""
    positions = np.array(scale, dtype=np.float64)
    distances = np.subtract.outer(positions, positions)
    squared: Array = (distances / (distances.max() or 1)) ** 2
    return squared


def _exact_sum(values: Array) -> float:
    """The sum of all values, correctly rounded, so that the order of raters and scores does not
    matter.
    """
    return math.fsum(values.ravel())

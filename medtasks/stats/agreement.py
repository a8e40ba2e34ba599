"""Agreement between raters (judges, humans) beyond chance, with intervals from a cluster bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.errors import UsageError
from medtasks.stats.bootstrap import check_confidence, cluster_draws

Ratings: TypeAlias = "Sequence[Sequence[float | None]]"
"""Raters × items: scores on one scale; None for a missing rating."""
Integers: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = "Sequence[int] | Integers"
"""How often each item is taken; 1 by default."""
Level = Literal["nominal", "ordinal"]

ONE_CATEGORY = "all ratings are of one category, so agreement beyond chance is undefined"


@dataclass(frozen=True)
class Agreement:
    """An agreement coefficient; ``value`` is None if it is undefined, for the given ``reason``.

    ``low`` and ``high`` bound the percentile interval (only `agreement_interval` fills them; if it cannot, ``reason``
    says why). ``items`` counts the items used: those rated by at least two raters.
    """

    value: float | None
    low: float | None
    high: float | None
    items: int
    reason: str | None = None


class Statistic(Protocol):
    """A statistic for `agreement_interval`: ``fleiss_kappa``, ``functools.partial(krippendorff_alpha, level=...)``, or
    ``lambda ratings, counts: cohen_kappa(*ratings, counts=counts)``."""

    def __call__(self, ratings: Ratings, *, counts: Counts) -> Agreement: ...


def cohen_kappa(
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    quadratic: bool = False,
    counts: Counts | None = None,
) -> Agreement:
    """Cohen's kappa of two raters, ``1 - Σ w·observed / Σ w·expected`` over pairs of categories.

    Cohen 1960 (w = 1 off the diagonal) and, if ``quadratic``, 1968: w is the squared distance on the scale, so an
    unused level still counts as a step. Items that either rater left out are ignored.

    Raises:
        UsageError: lengths differ.
    """
    coded = _coded([first, second], counts).rated_by(2)
    size, items = len(coded.scale), coded.items
    if not items:
        return _undefined(0, "no item was rated by both")
    table = np.zeros((size, size), dtype=np.int64)
    np.add.at(table, (coded.codes[0], coded.codes[1]), coded.counts)
    distances = _squared(coded.scale) if quadratic else 1 - np.eye(size)
    chance = _sum(distances * np.multiply.outer(table.sum(axis=1), table.sum(axis=0)))
    if not chance:
        return _undefined(items, ONE_CATEGORY)
    return Agreement(1 - items * _sum(distances * table) / chance, None, None, items)


def fleiss_kappa(ratings: Ratings, *, counts: Counts | None = None) -> Agreement:
    """Fleiss' kappa of two or more raters and unordered categories, ``(P - P_e) / (1 - P_e)``.

    P is the share of agreeing pairs of raters, averaged over items; P_e the sum of squared category shares
    (Fleiss 1971). Computed on integers as ``1 - (1 - P) / (1 - P_e)``.

    Raises:
        UsageError: fewer than two raters, unequal lengths, or a missing rating (`krippendorff_alpha` takes those).
    """
    coded = _coded(ratings, counts)
    missing = np.argwhere(coded.codes < 0)
    if len(missing):
        rater, item = missing[0]
        raise UsageError(
            f"rater {rater + 1} has no rating for item {item + 1}, Fleiss' kappa needs every rating: "
            "leave the item out or use Krippendorff's alpha"
        )
    items, raters = coded.items, len(ratings)
    if not items:
        return _undefined(0, "there are no items")
    per_item = coded.per_item()
    disagreeing = int(np.sum(coded.counts * (raters**2 - np.sum(per_item**2, axis=1))))
    used = [int(number) for number in np.einsum("i,ic->c", coded.counts, per_item)]
    total = items * raters
    chance = total**2 - sum(number**2 for number in used)
    if not chance:
        return _undefined(items, ONE_CATEGORY)
    return Agreement(1 - disagreeing * total / ((raters - 1) * chance), None, None, items)


def krippendorff_alpha(ratings: Ratings, level: Level, *, counts: Counts | None = None) -> Agreement:
    """Krippendorff's alpha, ``1 - D_o / D_e``, of two or more raters; ratings may be missing.

    ``D_o`` is the mean squared difference of ratings of one item, ``D_e`` that of any two pairable ratings, by the
    coincidence matrix (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"). Squared differences: 1
    (nominal), or that of the mid-ranks among pairable ratings (ordinal). Items with fewer than two ratings are ignored.
    Memory grows with the square of the number of distinct scores.

    Raises:
        UsageError: fewer than two raters, or unequal lengths.
    """
    coded = _coded(ratings, counts).rated_by(2)
    items, per_item = coded.items, coded.per_item()
    if not items:
        return _undefined(0, "no item was rated by two raters")
    rated = per_item.sum(axis=1)
    observed = np.zeros((len(coded.scale),) * 2)
    for number in np.unique(rated):  # integers within each number of raters, so that item order cannot matter
        rows, times = per_item[rated == number], coded.counts[rated == number]
        pairs = np.einsum("i,ic,ik->ck", times, rows, rows) - np.diag(np.einsum("i,ic->c", times, rows))
        observed += pairs / (number - 1)
    used = np.einsum("i,ic->c", coded.counts, per_item)
    squared = 1 - np.eye(len(used)) if level == "nominal" else _squared(2 * np.cumsum(used) - used)
    chance = _sum(squared * np.multiply.outer(used, used))
    if not chance:
        return _undefined(items, ONE_CATEGORY)
    return Agreement(1 - (int(used.sum()) - 1) * _sum(squared * observed) / chance, None, None, items)


def spearman(
    first: Sequence[float | None], second: Sequence[float | None], *, counts: Counts | None = None
) -> Agreement:
    """Spearman's rank correlation of two raters: Pearson's of the mid-ranks (Spearman 1904; ties share a mean rank).

    As ``scipy.stats.spearmanr``, but on integers (doubled, centred ranks), so that neither the order of the items nor
    of the raters changes the last digit and equal rankings give exactly 1. Items that either rater left out are
    ignored.

    Raises:
        UsageError: lengths differ.
    """
    coded = _coded([first, second], counts).rated_by(2)
    items = coded.items
    if items < 2:
        return _undefined(items, f"{items} item{'s' * (items != 1)} rated by both, a correlation needs at least 2")
    ranks = []
    for codes in coded.codes:
        used = np.zeros(len(coded.scale), dtype=np.int64)
        np.add.at(used, codes, coded.counts)
        ranks.append((2 * np.cumsum(used) - used - items)[codes])
    one, two = ranks
    spread = int(np.sum(coded.counts * one**2)) * int(np.sum(coded.counts * two**2))
    if not spread:
        return _undefined(items, "a rater gave every item the same rating, so ranks cannot be compared")
    shared = int(np.sum(coded.counts * one * two))
    return Agreement(math.copysign(math.sqrt(shared**2 / spread), shared), None, None, items)


def agreement_interval(
    ratings: Ratings,
    statistic: Statistic,
    clusters: Sequence[str],
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """An agreement with its percentile interval under resampling of the items' clusters with replacement.

    Raters are fixed, items are drawn by whole clusters (image, patient): the draws of
    `medtasks.stats.bootstrap.cluster_bootstrap` for the same clusters and seed (Davison and Hinkley 1997, section 3.8).
    Items with equal ratings are counted together, so ``statistic`` sees each distinct column once, with ``counts``. The
    result does not depend on the order of the items.

    A percentile interval is not centred: if the coefficient is strongly biased (few clusters, values near 1) it may
    be entirely on one side of the value.

    Args:
        ratings: raters × items.
        statistic: see `Statistic`.
        clusters: one name per item.
        resamples: number of resamples, at least 1.
        confidence: two-sided level, above 0 and below 1.
        seed: of numpy's PCG64, 0 or more.

    Returns:
        The agreement, without bounds (and with the reason) for fewer than two clusters, or if it is undefined for all
        items or in a resample.

    Raises:
        UsageError: shapes or arguments do not fit.
    """
    check_confidence(confidence)
    coded = _coded(ratings)
    if len(clusters) != len(coded.counts):
        raise UsageError(f"{len(clusters)} cluster names for {len(coded.counts)} items, expected one name per item")
    columns, kind_of = np.unique(coded.codes, axis=1, return_inverse=True)
    kind_of = kind_of.reshape(-1)  # numpy 2.0 alone keeps the axis
    scale: list[float | None] = [*coded.scale, None]  # code -1 is the last
    kinds = [[scale[code] for code in row] for row in columns]
    size = columns.shape[1]
    point = statistic(kinds, counts=np.bincount(kind_of, minlength=size))
    names = {name: number for number, name in enumerate(sorted(set(clusters)))}
    if point.value is None:
        return point
    if len(names) < 2:
        return replace(point, reason=f"found {len(names)} cluster, an interval needs at least 2")
    cluster_of = np.array([names[name] for name in clusters])
    values = []
    for block in cluster_draws(len(names), resamples, seed):
        for drawn in block:
            times = np.bincount(kind_of, weights=drawn[cluster_of], minlength=size).astype(np.int64)
            values.append(statistic(kinds, counts=times).value)
    defined = [value for value in values if value is not None]
    if len(defined) < resamples:
        return replace(
            point, reason=f"the agreement is undefined in {resamples - len(defined)} of {resamples} resamples"
        )
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return replace(point, low=float(low), high=float(high))


@dataclass(frozen=True)
class _Coded:
    """Ratings as positions in the sorted ``scale``, ``(raters, items)``; -1 for a missing one."""

    codes: Integers
    scale: list[float]
    counts: Integers

    @property
    def items(self) -> int:
        return int(self.counts.sum())

    def rated_by(self, raters: int) -> _Coded:
        """The items with at least ``raters`` ratings."""
        kept = np.count_nonzero(self.codes >= 0, axis=0) >= raters
        return _Coded(self.codes[:, kept], self.scale, self.counts[kept])

    def per_item(self) -> Integers:
        """How many raters gave each score, ``(items, scores)``."""
        numbers = np.zeros((len(self.counts), len(self.scale)), dtype=np.int64)
        for codes in self.codes:
            rated = np.flatnonzero(codes >= 0)
            numbers[rated, codes[rated]] += 1
        return numbers


def _coded(ratings: Ratings, counts: Counts | None = None) -> _Coded:
    lengths = [len(row) for row in ratings]
    if len(lengths) < 2:
        raise UsageError(f"found {len(lengths)} rater{'s' * (len(lengths) != 1)}, agreement needs at least 2")
    if len(set(lengths)) > 1:
        raise UsageError(f"raters have {lengths} items, expected the same items for every rater")
    scale = sorted({score for row in ratings for score in row if score is not None})
    position: dict[float | None, int] = {None: -1} | {score: number for number, score in enumerate(scale)}
    codes = np.array([[position[score] for score in row] for row in ratings], dtype=np.int64)
    times = np.ones(lengths[0], dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    return _Coded(codes, scale, times)


def _squared(scale: Sequence[float] | Integers) -> npt.NDArray[np.float64]:
    """Squared distances on a scale, as shares of the largest."""
    numbers = np.array(scale, dtype=np.float64)
    distances = np.abs(np.subtract.outer(numbers, numbers))
    squared: npt.NDArray[np.float64] = (distances / (distances.max() or 1)) ** 2
    return squared


def _sum(values: npt.NDArray[np.float64]) -> float:
    """Correctly rounded, so that the order of raters and scores does not matter."""
    return math.fsum(values.ravel())


def _undefined(items: int, reason: str) -> Agreement:
    return Agreement(None, None, None, items, reason)

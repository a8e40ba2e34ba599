"""Agreement between raters (judges, humans) beyond chance, with intervals from a cluster bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from medtasks.errors import UsageError

Label = str | float
"""A category (text or number) of one item; scales are numbers. None and NaN stand for a missing rating."""
Ratings = Sequence[Sequence[Label | None]]
"""Raters × items."""
Counts = Sequence[int] | NDArray[np.int64]
"""How often each item is taken; 1 where not given."""
Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]

ONE_CATEGORY = "all ratings are of one category, so agreement beyond chance is undefined"
WIDEST = 1e150  # squares of differences stay finite


@dataclass(frozen=True)
class Agreement:
    """An agreement coefficient; ``value`` is None where it is undefined, and ``reason`` says why.

    ``low`` and ``high`` bound the percentile interval (only `agreement_interval` fills them; where it cannot,
    ``reason`` says why). ``items`` counts the items that entered: those rated by at least two raters.
    """

    value: float | None
    low: float | None
    high: float | None
    items: int
    reason: str | None = None


class Statistic(Protocol):
    """What `agreement_interval` resamples: ``fleiss_kappa``, ``functools.partial(krippendorff_alpha, level=...)``, or
    ``lambda ratings, counts: cohen_kappa(*ratings, counts=counts)``."""

    def __call__(self, ratings: Ratings, *, counts: Counts) -> Agreement: ...


def cohen_kappa(
    first: Sequence[Label | None],
    second: Sequence[Label | None],
    weights: Weights = "none",
    *,
    counts: Counts | None = None,
) -> Agreement:
    """Cohen's kappa of two raters, ``1 - Σ w·observed / Σ w·expected`` over pairs of categories.

    Cohen 1960 (w = 1 off the diagonal) and 1968 (weighted). Weights are distances between the numbers of the
    scale, ``|a - b|`` or ``(a - b)²``, so a level nobody used still counts as a step. Items that either rater
    left out do not enter; ``items`` says how many did.

    Raises:
        UsageError: lengths differ, labels are of mixed kinds, or a weighted kappa is asked of text labels.
    """
    _one_of("weights", weights, get_args(Weights))
    coded = _coded([first, second], counts, None if weights == "none" else f"weights {weights!r}").both_rated()
    size, items = len(coded.categories), coded.items
    if not items:
        return _undefined(0, "no item was rated by both")
    table = np.zeros((size, size), dtype=np.int64)
    np.add.at(table, (coded.codes[0], coded.codes[1]), coded.counts)
    distances = _distances(coded.categories, {"none": 0, "linear": 1, "quadratic": 2}[weights])
    chance = _sum(distances * np.multiply.outer(table.sum(axis=1), table.sum(axis=0)))
    if not chance:
        return _undefined(items, ONE_CATEGORY)
    return Agreement(1 - items * _sum(distances * table) / chance, None, None, items)


def fleiss_kappa(ratings: Ratings, *, counts: Counts | None = None) -> Agreement:
    """Fleiss' kappa of two or more raters and unordered categories, ``(P - P_e) / (1 - P_e)``.

    P is the share of agreeing pairs of raters, averaged over items; P_e the sum of squared category shares
    (Fleiss 1971). Computed on integers as ``1 - (1 - P) / (1 - P_e)``.

    Raises:
        UsageError: fewer than two raters, unequal lengths, mixed labels, or a missing rating (`krippendorff_alpha`
            takes those).
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

    ``D_o`` is the mean squared difference of ratings of one item, ``D_e`` that of any two pairable ratings, by
    the coincidence matrix (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"). Squared
    differences: 1 (nominal); squared difference of the mid-ranks among pairable ratings (ordinal);
    ``(a - b)²`` (interval). An item with fewer than two ratings does not enter. Memory grows with the square
    of the number of distinct labels: it is made for scales.

    Raises:
        UsageError: fewer than two raters, unequal lengths, mixed labels, or text labels on an ordered level.
    """
    _one_of("level", level, get_args(Level))
    coded = _coded(ratings, counts, None if level == "nominal" else f"level {level!r}").paired()
    items, per_item = coded.items, coded.per_item()
    if not items:
        return _undefined(0, "no item was rated by two raters")
    rated = per_item.sum(axis=1)
    observed = np.zeros((len(coded.categories),) * 2)
    for number in np.unique(rated):  # integers within each number of raters, so that item order cannot matter
        rows, times = per_item[rated == number], coded.counts[rated == number]
        pairs = np.einsum("i,ic,ik->ck", times, rows, rows) - np.diag(np.einsum("i,ic->c", times, rows))
        observed += pairs / (number - 1)
    used = np.einsum("i,ic->c", coded.counts, per_item)
    if level == "ordinal":
        squared = _distances([float(rank) for rank in 2 * np.cumsum(used) - used], 2)
    else:
        squared = _distances(coded.categories, 0 if level == "nominal" else 2)
    chance = _sum(squared * np.multiply.outer(used, used))
    if not chance:
        return _undefined(items, ONE_CATEGORY)
    return Agreement(1 - (int(used.sum()) - 1) * _sum(squared * observed) / chance, None, None, items)


def spearman(
    first: Sequence[Label | None], second: Sequence[Label | None], *, counts: Counts | None = None
) -> Agreement:
    """Spearman's rank correlation of two raters: Pearson's of the mid-ranks (Spearman 1904; ties share a mean rank).

    As ``scipy.stats.spearmanr``, but on integers (doubled, centred ranks), so that neither the order of the
    items nor of the raters moves the last digit and equal rankings give exactly 1. Items that either rater
    left out do not enter.

    Raises:
        UsageError: lengths differ, or labels are not numbers.
    """
    coded = _coded([first, second], counts, "Spearman's correlation").both_rated()
    items = coded.items
    if items < 2:
        return _undefined(items, f"{items} item{'s' * (items != 1)} rated by both, a correlation needs at least 2")
    ranks = []
    for codes in coded.codes:
        used = np.zeros(len(coded.categories), dtype=np.int64)
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

    Raters stay, items are drawn by whole clusters (image, patient), as in
    `medtasks.stats.bootstrap.cluster_bootstrap`, whose draws for the same clusters and seed these are (Davison
    and Hinkley 1997, section 3.8). Items with equal ratings are counted together, so ``statistic`` sees each
    distinct column once, with ``counts``. The order of the items cannot change a byte.

    A percentile interval is not centred: where the coefficient is strongly biased (few clusters, values near 1)
    it may lie to one side of the value.

    Args:
        ratings: raters × items.
        statistic: see `Statistic`.
        clusters: one name per item.
        resamples: number of resamples, at least 1.
        confidence: two-sided level, above 0 and below 1.
        seed: of numpy's PCG64, 0 or more.

    Returns:
        The agreement; without value for fewer than two clusters or where the statistic has none; without bounds
        where the statistic is undefined in a resample.

    Raises:
        UsageError: shapes or arguments do not fit.
    """
    if resamples < 1:
        raise UsageError(f"resamples is {resamples}, expected 1 or more")
    if not 0 < confidence < 1:
        raise UsageError(f"confidence is {confidence}, expected above 0 and below 1")
    if seed < 0:
        raise UsageError(f"seed is {seed}, expected 0 or more")
    coded = _coded(ratings)
    if len(clusters) != len(coded.counts):
        raise UsageError(f"{len(clusters)} cluster names for {len(coded.counts)} items, expected one name per item")
    columns, kind_of = np.unique(coded.codes, axis=1, return_inverse=True)
    kind_of = kind_of.reshape(-1)  # numpy 2.0 alone keeps the axis
    labels: list[Label | None] = [*coded.categories, None]  # code -1 is the last
    kinds = [[labels[code] for code in row] for row in columns]
    size = columns.shape[1]
    point = statistic(kinds, counts=np.bincount(kind_of, minlength=size))
    names = {name: number for number, name in enumerate(sorted(set(clusters)))}
    if point.value is None:
        return point
    if len(names) < 2:
        return replace(point, value=None, reason=f"found {len(names)} cluster, an interval needs at least 2")
    cluster_of = np.array([names[name] for name in clusters])
    generator = np.random.Generator(np.random.PCG64(seed))
    chances = np.full(len(names), 1 / len(names))
    values = []
    for _ in range(resamples):
        drawn = generator.multinomial(len(names), chances)
        times = np.bincount(kind_of, weights=drawn[cluster_of], minlength=size).astype(np.int64)
        values.append(statistic(kinds, counts=times).value)
    defined = [value for value in values if value is not None]
    if len(defined) < resamples:
        reason = f"the agreement is undefined in {resamples - len(defined)} of {resamples} resamples"
        return replace(point, low=None, high=None, reason=reason)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return replace(point, low=float(low), high=float(high))


@dataclass(frozen=True)
class _Coded:
    """Ratings as positions in the sorted categories, ``(raters, items)``; -1 where missing."""

    codes: NDArray[np.int64]
    categories: list[Any]
    counts: NDArray[np.int64]

    @property
    def items(self) -> int:
        return int(self.counts.sum())

    def both_rated(self) -> _Coded:
        return self._only(np.all(self.codes >= 0, axis=0))

    def paired(self) -> _Coded:
        return self._only(np.count_nonzero(self.codes >= 0, axis=0) >= 2)

    def per_item(self) -> NDArray[np.int64]:
        """How many raters put an item into a category, ``(items, categories)``."""
        found = np.zeros((len(self.counts), len(self.categories)), dtype=np.int64)
        for codes in self.codes:
            rated = np.flatnonzero(codes >= 0)
            found[rated, codes[rated]] += 1
        return found

    def _only(self, kept: NDArray[np.bool_]) -> _Coded:
        return _Coded(self.codes[:, kept], self.categories, self.counts[kept])


def _coded(ratings: Ratings, counts: Counts | None = None, ordered: str | None = None) -> _Coded:
    """Check ratings and counts; ``ordered`` names what needs numbers, for the message."""
    lengths = [len(row) for row in ratings]
    if len(lengths) < 2:
        raise UsageError(f"found {len(lengths)} rater{'s' * (len(lengths) != 1)}, agreement needs at least 2")
    if len(set(lengths)) > 1:
        raise UsageError(f"raters have {lengths} items, expected the same items for every rater")
    rows = [[_label(value, rater, item) for item, value in enumerate(row)] for rater, row in enumerate(ratings)]
    found: set[Any] = {value for row in rows for value in row if value is not None}
    texts, numbers = ({value for value in found if isinstance(value, str) is text} for text in (True, False))
    if texts and numbers:  # "1" from a CSV file would never agree with 1
        raise UsageError(f"labels mix text ({min(texts)!r}) and numbers ({min(numbers)!r}), expected one kind")
    if texts and ordered:
        raise UsageError(f"{ordered} needs numbers, found {min(texts)!r}: give each level of the scale its number")
    categories = sorted(found)
    position = {label: number for number, label in enumerate(categories)}
    codes = [[-1 if value is None else position[value] for value in row] for row in rows]
    times = np.ones(lengths[0], dtype=np.int64) if counts is None else np.asarray(counts)
    if times.shape != (lengths[0],) or (times.size and (times.dtype.kind not in "iu" or times.min() < 0)):
        raise UsageError(f"counts are {counts!r}, expected an integer of 0 or more for each of {lengths[0]} items")
    return _Coded(np.array(codes, dtype=np.int64), categories, times.astype(np.int64))


def _label(value: Any, rater: int, item: int) -> Label | None:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str):
        return value
    number: Any = value
    if not isinstance(value, Real) or abs(number) > WIDEST:
        raise UsageError(
            f"rater {rater + 1} rates item {item + 1} as {value!r}, "
            f"expected text, a number of at most {WIDEST:g}, None or NaN"
        )
    return None if number != number else number


def _distances(scale: Sequence[Any], power: int) -> NDArray[np.float64]:
    """Distances of categories: 0 or 1 for power 0, else ``|a - b|`` to that power as shares of the widest."""
    if power == 0:
        return 1 - np.eye(len(scale))
    numbers = np.array(scale, dtype=np.float64)
    apart = np.abs(np.subtract.outer(numbers, numbers))
    return (apart / (apart.max() or 1)) ** power


def _sum(values: NDArray[np.float64]) -> float:
    """Correctly rounded, so that the order of raters and categories does not matter."""
    return math.fsum(values.ravel())


def _one_of(name: str, found: str, expected: Sequence[str]) -> None:
    if found not in expected:
        raise UsageError(f"{name} is {found!r}, expected one of {', '.join(expected)}")


def _undefined(items: int, reason: str) -> Agreement:
    return Agreement(None, None, None, items, reason)

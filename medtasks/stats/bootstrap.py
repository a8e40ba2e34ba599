"""Cluster bootstrap of corpus scores, on summed statistics."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array, check_finite, segment_sums, whole_columns

BLOCK = 2**20  # drawn counts in memory at a time
THREADS = min(4, os.cpu_count() or 1)
STACK = 512  # columns of statistics multiplied at a time

Score: TypeAlias = Callable[[Array], Array]
"""``(..., width) -> (...)``, as `medtasks.metrics.base.Metric.score`."""
Rows: TypeAlias = npt.NDArray[np.int64]
Clusters: TypeAlias = Sequence[str] | Rows
"""For each sample its cluster: names, or numbers from 0 in the order of names."""


CONFIDENCE = 0.95
"""Two-sided level of all intervals."""
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Interval:
    """A percentile interval; ``low`` and ``high`` are None if there is none, for the given ``reason``."""

    low: float | None
    high: float | None
    reason: str | None = None


def joint_intervals(entries: Sequence[tuple[Array, Score]], *, resamples: int = 1000, seed: int = 0) -> list[Interval]:
    """Percentile intervals of corpus scores under resampling of whole clusters with replacement.

    Questions about one image (or visits of one patient) are not independent, so clusters are drawn, not samples. A
    resample is a multinomial count per cluster; its totals are those counts times the clusters' summed statistics, and
    its score is ``score`` of the totals. Davison and Hinkley 1997, section 3.8; Efron 1979 for percentiles.

    The result does not depend on the order of the rows or the number of threads: clusters are sorted by name, their
    sums are correctly rounded, and only products of whole numbers, which are exact, use BLAS. The draws depend on the
    number of clusters, resamples and seed alone, so those of many metrics and groups are made once.

    ``entries`` are totals ``(clusters, width)`` (`cluster_totals`) and their score; ``seed`` is that of numpy's PCG64.
    An interval has no bounds for fewer than two clusters, or if the score of a resample is undefined.

    Raises:
        UsageError: ``resamples`` is below 1, or the seed is negative.
    """
    # a task's scores are often those of one of its groups
    distinct: dict[tuple[Score, tuple[int, ...], bytes], int] = {}
    places = [
        distinct.setdefault((score, sums.shape, sums.tobytes()), number) for number, (sums, score) in enumerate(entries)
    ]
    by_size: dict[int, list[int]] = {}
    for number in distinct.values():
        by_size.setdefault(len(entries[number][0]), []).append(number)

    def resampled(numbers: list[int]) -> list[Interval]:
        clusters = len(entries[numbers[0]][0])
        if clusters < 2:
            few = f"found {clusters} cluster{'s' * (clusters != 1)}, an interval needs at least 2"
            return [Interval(None, None, few)] * len(numbers)
        scores = _resampled_scores([entries[number] for number in numbers], resamples, seed)
        undefined = np.count_nonzero(~np.isfinite(scores), axis=1)
        ends = np.full((len(scores), 2), np.nan)
        if not undefined.all():
            ends[undefined == 0] = np.quantile(scores[undefined == 0], TAILS, axis=1).T
        return [
            Interval(None, None, f"the score is undefined in {count} of {resamples} resamples")
            if count
            else Interval(low, high)
            for count, (low, high) in zip(undefined.tolist(), ends.tolist(), strict=True)
        ]

    found: dict[int, Interval] = {}
    with ThreadPoolExecutor(THREADS) as pool:  # NumPy draws without Python's global lock
        for numbers, intervals in zip(by_size.values(), pool.map(resampled, by_size.values()), strict=True):
            found.update(zip(numbers, intervals, strict=True))
    return [found[place] for place in places]


def joint_resamples(
    entries: Sequence[tuple[Array, Score]], clusters: Sequence[str], *, resamples: int = 1000, seed: int = 0
) -> Array:
    """Scores ``(entries, resamples)`` of several models on the same samples, in the same resamples of whole clusters;
    NaN where undefined, and with fewer than two clusters.

    ``entries`` are statistics ``(n, width)``, rows in the same order of samples, and their score; widths may differ.
    The draws are those of `joint_intervals` (same clusters, resamples and seed), so an entry's scores depend neither on
    its neighbours nor on their order.

    Raises:
        UsageError: shapes or arguments do not fit.
        DataError: a statistic is not a finite number.
    """
    members = _members(clusters)
    sums = [(_summed(np.asarray(statistics, dtype=np.float64), members), score) for statistics, score in entries]
    return _resampled_scores(sums, resamples, seed)


def cluster_totals(statistics: Array, clusters: Clusters) -> Array:
    """Summed statistics per cluster, ``(k, width)``, clusters in the order of their names.

    Raises:
        UsageError: not one cluster name per row of statistics.
        DataError: a statistic is not a finite number.
    """
    return _summed(np.asarray(statistics, dtype=np.float64), _members(clusters))


def clustered_standard_error(statistics: Array, clusters: Clusters) -> float | None:
    """Standard error of a mean-type score with clustered samples; None for fewer than two clusters.

    For statistics ``(sum, count)``: the linearized ratio estimator, ``sqrt(k/(k-1) · Σ (S_c - m·N_c)²) / N``
    over the k clusters (Cochran 1977, section 6).

    Raises:
        UsageError: the statistics are not of width 2.
    """
    sums = cluster_totals(statistics, clusters)
    if sums.shape[1] != 2:
        raise UsageError(f"statistics have width {sums.shape[1]}, a mean-type metric has 2")
    count = len(sums)
    samples = math.fsum(sums[:, 1])
    if count < 2 or samples <= 0:
        return None
    mean = math.fsum(sums[:, 0]) / samples
    residuals = math.fsum((sums[:, 0] - mean * sums[:, 1]) ** 2)
    return math.sqrt(count / (count - 1) * residuals) / samples


def _members(clusters: Clusters) -> tuple[Rows, Rows]:
    """The rows in the order of their clusters' names, and where each cluster begins among them."""
    if isinstance(clusters, np.ndarray):
        codes = clusters
    else:
        number = {name: code for code, name in enumerate(sorted(set(clusters)))}
        codes = np.array([number[name] for name in clusters], dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(np.diff(codes[order], prepend=-1))


def _summed(statistics: Array, members: tuple[Rows, Rows]) -> Array:
    """Sums of the clusters' rows, for all clusters at once."""
    order, begins = members
    if statistics.ndim != 2 or len(statistics) != len(order):
        raise UsageError(f"{len(order)} cluster names for statistics of shape {statistics.shape}, expected (n, width)")
    check_finite(statistics)
    return segment_sums(statistics[order], begins)


def _resampled_scores(entries: Sequence[tuple[Array, Score]], resamples: int, seed: int) -> Array:
    """Scores ``(entries, resamples)`` of tables of cluster totals; NaN for fewer than two clusters."""
    found = np.full((len(entries), resamples), np.nan)
    count = len(entries[0][0]) if entries else 0
    if count < 2:
        return found
    alike: dict[tuple[Score, int], list[int]] = {}
    for number, (table, score) in enumerate(entries):
        alike.setdefault((score, table.shape[1]), []).append(number)
    stacks = []  # tables of one score and width side by side: their resamples are scored in one call
    for (score, width), numbers in alike.items():
        most = max(1, STACK // width)
        for part in (numbers[first : first + most] for first in range(0, len(numbers), most)):
            stacks.append((np.hstack([entries[number][0] for number in part]), part, score))
    begin = 0
    for drawn in cluster_draws(count, resamples, seed):
        end = begin + len(drawn)
        for stacked, tables, score in stacks:
            products = _products(drawn, stacked).reshape(len(drawn), len(tables), -1)
            # a copy, so that a score sees the same memory layout as if it were drawn alone
            rows = np.ascontiguousarray(products.swapaxes(0, 1)).reshape(len(tables) * len(drawn), -1)
            found[tables, begin:end] = score(rows).reshape(len(tables), len(drawn))
        begin = end
    return found


def _products(drawn: Array, table: Array) -> Array:
    """``drawn @ table``, the same on every machine.

    BLAS multiplies the columns of whole numbers, whose sums are exact in any order. The others are left to einsum; its
    order of summation does not depend on the number of threads, but it does on whether there is a single column, and
    on whether rows are contiguous.
    """
    found = np.zeros((len(drawn), table.shape[1]))
    used = table.any(axis=0)  # histograms are mostly empty
    whole = whole_columns(table) & used
    found[:, whole] = drawn @ table[:, whole]
    rest = np.ascontiguousarray(table[:, used & ~whole])
    if rest.shape[1] == 1:
        rest = np.hstack([rest, rest])
    if rest.shape[1]:
        found[:, used & ~whole] = np.einsum("rk,kw->rw", drawn, rest)[:, : np.count_nonzero(used & ~whole)]
    return found


def cluster_draws(count: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each cluster is drawn, in blocks ``(resamples, clusters)`` of limited size."""
    if resamples < 1:
        raise UsageError(f"resamples is {resamples}, expected 1 or more")
    if seed < 0:
        raise UsageError(f"seed is {seed}, expected 0 or more")
    if count * resamples <= BLOCK:
        yield _drawn_once(count, resamples, seed).astype(np.float64)
        return
    generator = np.random.Generator(np.random.PCG64(seed))
    block = max(1, BLOCK // count)
    for begin in range(0, resamples, block):
        yield _multinomial(generator, count, min(block, resamples - begin)).astype(np.float64)


@functools.lru_cache(maxsize=128)
def _drawn_once(count: int, resamples: int, seed: int) -> npt.NDArray[np.unsignedinteger]:
    """Cached in the smallest integer type, because a leaderboard has many runs of the same tasks."""
    drawn = _multinomial(np.random.Generator(np.random.PCG64(seed)), count, resamples)
    return drawn.astype(np.min_scalar_type(int(drawn.max(initial=0))))


def _multinomial(generator: np.random.Generator, count: int, size: int) -> npt.NDArray[np.int64]:
    return generator.multinomial(count, np.full(count, 1 / count), size=size)

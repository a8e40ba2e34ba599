"""Cluster bootstrap of corpus scores, on summed statistics."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array, check_finite, segment_begins, segment_sums, whole_columns

BLOCK = 2**20
"""Drawn counts in memory at a time."""
STACK = 512
"""Columns of statistics multiplied at a time."""

Score: TypeAlias = Callable[[Array], Array]
"""``(..., width) -> (...)``, as `medtasks.metrics.base.Metric.score`."""
Rows: TypeAlias = npt.NDArray[np.int64]
Clusters: TypeAlias = Sequence[str] | Rows
"""For each sample its cluster: names, or numbers from 0 in the order of names."""

CONFIDENCE = 0.95
"""Two-sided level of all intervals."""
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
"""Probabilities below the low and the high end of an interval."""


def cluster_totals(statistics: Array, clusters: Clusters) -> Array:
    """Summed statistics per cluster, ``(k, width)``, clusters in the order of their names; one
    cluster per row.

    Raises:
        UsageError: not one cluster name per row of statistics.
        DataError: a statistic is not a finite number.
    """
    statistics, codes = cluster_codes(statistics, clusters)
    order = np.argsort(codes, kind="stable")
    return segment_sums(statistics[order], segment_begins(codes[order]))


def cluster_codes(statistics: Array, clusters: Clusters) -> tuple[Array, Rows]:
    """The statistics ``(n, width)`` as an array, and the number ``(n,)`` of each row's cluster;
    errors are those of :func:`cluster_totals`.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if isinstance(clusters, np.ndarray):
        codes = clusters
    else:
        number = {name: code for code, name in enumerate(sorted(set(clusters)))}
        codes = np.array([number[name] for name in clusters], dtype=np.int64)
    if statistics.ndim != 2 or len(statistics) != len(codes):
        names = f"{len(codes)} cluster names"
        raise UsageError(f"{names} for statistics of shape {statistics.shape}, expected (n, width)")
    check_finite(statistics)
    return statistics, codes


def clustered_standard_error(statistics: Array, clusters: Clusters) -> float | None:
    """Standard error of a mean-type score with clustered samples; None for fewer than two clusters.

    For statistics ``(sum, count)``: the linearized ratio estimator, ``sqrt(k/(k-1) · Σ (S_c -
    m·N_c)²) / N`` over the k clusters (Cochran 1977, section 6). Errors are those of
    :func:`cluster_totals`.
    """
    cluster_sums, cluster_counts = cluster_totals(statistics, clusters).T
    count = len(cluster_sums)
    samples = math.fsum(cluster_counts)
    if count < 2 or samples <= 0:
        return None
    mean = math.fsum(cluster_sums) / samples
    residuals = cluster_sums - mean * cluster_counts
    squares = math.fsum(residuals**2)
    return math.sqrt(count / (count - 1) * squares) / samples


@dataclass(frozen=True)
class _Stack:
    """Tables of one score and width side by side, ``(clusters, entries · width)``: their resamples
    are scored in one call.
    """

    entries: list[int]
    tables: Array
    score: Score

    def scores(self, drawn: Array) -> Array:
        """Scores ``(entries, resamples)`` of drawn counts ``(resamples, clusters)``."""
        entries, resamples = len(self.entries), len(drawn)
        totals = _products(drawn, self.tables)  # (resamples, entries · width)
        totals_by_entry = totals.reshape(resamples, entries, -1).swapaxes(0, 1)
        # a copy, so that a score sees the same memory layout as if it were drawn alone
        rows = np.ascontiguousarray(totals_by_entry).reshape(entries * resamples, -1)
        return self.score(rows).reshape(entries, resamples)


def joint_resamples(
    entries: Sequence[tuple[Array, Score]], *, resamples: int = 1000, seed: int = 0
) -> Array:
    """Scores ``(entries, resamples)`` of several models on the same samples, in the same resamples
    of whole clusters; NaN where undefined, and with fewer than two clusters.

    ``entries`` are totals ``(clusters, width)`` of the same clusters (`cluster_totals`) and their
    score; widths may differ. An entry's scores depend neither on its neighbours nor on their order.

    Questions about one image (or visits of one patient) are not independent, so clusters are drawn,
    not samples. A resample is a multinomial count per cluster; its totals are those counts times
    the clusters' summed statistics, and its score is ``score`` of the totals (Davison and Hinkley
    1997, section 3.8). The draws depend on the number of clusters, resamples and seed alone.
    """
    scores = np.full((len(entries), resamples), np.nan)
    clusters = len(entries[0][0]) if entries else 0
    if clusters < 2:
        return scores
    stacks = _stacked(entries)
    begin = 0
    for drawn in cluster_draws(clusters, resamples, seed):
        end = begin + len(drawn)
        for stack in stacks:
            scores[stack.entries, begin:end] = stack.scores(drawn)
        begin = end
    return scores


def _stacked(entries: Sequence[tuple[Array, Score]]) -> list[_Stack]:
    """The entries in stacks of at most `STACK` columns, each of one score and width."""
    alike: dict[tuple[Score, int], list[int]] = defaultdict(list)
    for number, (table, score) in enumerate(entries):
        alike[score, table.shape[1]].append(number)
    stacks = []
    for (score, width), numbers in alike.items():
        most = max(1, STACK // width)
        for first in range(0, len(numbers), most):
            members = numbers[first : first + most]
            tables = np.hstack([entries[number][0] for number in members])
            stacks.append(_Stack(members, tables, score))
    return stacks


def _products(drawn: Array, table: Array) -> Array:
    """``drawn @ table`` ``(resamples, columns)``, the same on every machine.

    BLAS multiplies the columns of whole numbers, whose sums are exact in any order. The others are
    left to einsum; its order of summation does not depend on the number of threads, but it does on
    whether there is a single column, and on whether rows are contiguous.
    """
    products = np.zeros((len(drawn), table.shape[1]))
    is_used = table.any(axis=0)  # histograms are mostly empty
    is_whole = whole_columns(table) & is_used
    products[:, is_whole] = drawn @ table[:, is_whole]
    is_fraction = is_used & ~is_whole
    fractions = np.ascontiguousarray(table[:, is_fraction])
    columns = fractions.shape[1]
    if columns == 1:
        fractions = np.hstack([fractions, fractions])
    if columns:
        products[:, is_fraction] = np.einsum("rk,kw->rw", drawn, fractions)[:, :columns]
    return products


def cluster_draws(count: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each cluster is drawn, in blocks ``(resamples, clusters)`` of limited size."""
    if count * resamples <= BLOCK:
        yield _drawn_once(count, resamples, seed).astype(np.float64)
        return
    generator = np.random.Generator(np.random.PCG64(seed))
    chances = np.full(count, 1 / count)
    block = max(1, BLOCK // count)
    for begin in range(0, resamples, block):
        drawn = generator.multinomial(count, chances, min(block, resamples - begin))
        yield drawn.astype(np.float64)


@functools.lru_cache(maxsize=128)
def _drawn_once(count: int, resamples: int, seed: int) -> npt.NDArray[np.unsignedinteger]:
    """The draws ``(resamples, clusters)`` in the smallest integer type, cached because a
    leaderboard has many runs of the same tasks.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.multinomial(count, np.full(count, 1 / count), resamples)
    return drawn.astype(np.min_scalar_type(int(drawn.max(initial=0))))

"""Cluster bootstrap of corpus scores, on summed statistics."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array, check_finite, segment_sums, whole_columns

BLOCK = 2**20  # drawn counts in memory at a time
STACK = 512  # columns of statistics multiplied at a time

Score: TypeAlias = Callable[[Array], Array]
"""``(..., width) -> (...)``, as `medtasks.metrics.base.Metric.score`."""
Rows: TypeAlias = npt.NDArray[np.int64]
Clusters: TypeAlias = Sequence[str] | Rows
"""For each sample its cluster: names, or numbers from 0 in the order of names."""


CONFIDENCE = 0.95
"""Two-sided level of all intervals."""
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


def cluster_totals(statistics: Array, clusters: Clusters) -> Array:
    """Summed statistics per cluster, ``(k, width)``, clusters in the order of their names; one
    cluster per row.

    Raises:
        UsageError: not one cluster name per row of statistics.
        DataError: a statistic is not a finite number.
    """
    statistics, codes = cluster_codes(statistics, clusters)
    order = np.argsort(codes, kind="stable")
    return segment_sums(statistics[order], np.flatnonzero(np.diff(codes[order], prepend=-1)))


def cluster_codes(statistics: Array, clusters: Clusters) -> tuple[Array, Rows]:
    """The statistics as an array, and the number of each row's cluster; errors are those of
    :func:`cluster_totals`.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if isinstance(clusters, np.ndarray):
        codes = clusters
    else:
        number = {name: code for code, name in enumerate(sorted(set(clusters)))}
        codes = np.array([number[name] for name in clusters], dtype=np.int64)
    if statistics.ndim != 2 or len(statistics) != len(codes):
        raise UsageError(
            f"{len(codes)} cluster names for statistics of shape {statistics.shape}, expected (n, width)"
        )
    check_finite(statistics)
    return statistics, codes


def clustered_standard_error(statistics: Array, clusters: Clusters) -> float | None:
    """Standard error of a mean-type score with clustered samples; None for fewer than two clusters.

    For statistics ``(sum, count)``: the linearized ratio estimator, ``sqrt(k/(k-1) · Σ (S_c -
    m·N_c)²) / N`` over the k clusters (Cochran 1977, section 6). Errors are those of
    :func:`cluster_totals`.
    """
    sums = cluster_totals(statistics, clusters)
    count = len(sums)
    samples = math.fsum(sums[:, 1])
    if count < 2 or samples <= 0:
        return None
    mean = math.fsum(sums[:, 0]) / samples
    residuals = math.fsum((sums[:, 0] - mean * sums[:, 1]) ** 2)
    return math.sqrt(count / (count - 1) * residuals) / samples


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
    found = np.full((len(entries), resamples), np.nan)
    count = len(entries[0][0]) if entries else 0
    if count < 2:
        return found
    alike: dict[tuple[Score, int], list[int]] = defaultdict(list)
    for number, (table, score) in enumerate(entries):
        alike[score, table.shape[1]].append(number)
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
            rows = np.ascontiguousarray(products.swapaxes(0, 1)).reshape(
                len(tables) * len(drawn), -1
            )
            found[tables, begin:end] = score(rows).reshape(len(tables), len(drawn))
        begin = end
    return found


def _products(drawn: Array, table: Array) -> Array:
    """``drawn @ table``, the same on every machine.

    BLAS multiplies the columns of whole numbers, whose sums are exact in any order. The others are
    left to einsum; its order of summation does not depend on the number of threads, but it does on
    whether there is a single column, and on whether rows are contiguous.
    """
    found = np.zeros((len(drawn), table.shape[1]))
    used = table.any(axis=0)  # histograms are mostly empty
    whole = whole_columns(table) & used
    found[:, whole] = drawn @ table[:, whole]
    rest = np.ascontiguousarray(table[:, used & ~whole])
    if rest.shape[1] == 1:
        rest = np.hstack([rest, rest])
    if rest.shape[1]:
        found[:, used & ~whole] = np.einsum("rk,kw->rw", drawn, rest)[
            :, : np.count_nonzero(used & ~whole)
        ]
    return found


def cluster_draws(count: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each cluster is drawn, in blocks ``(resamples, clusters)`` of limited size."""
    if count * resamples <= BLOCK:
        yield _drawn_once(count, resamples, seed).astype(np.float64)
        return
    generator, chances = np.random.Generator(np.random.PCG64(seed)), np.full(count, 1 / count)
    block = max(1, BLOCK // count)
    for begin in range(0, resamples, block):
        yield generator.multinomial(count, chances, min(block, resamples - begin)).astype(
            np.float64
        )


@functools.lru_cache(maxsize=128)
def _drawn_once(count: int, resamples: int, seed: int) -> npt.NDArray[np.unsignedinteger]:
    """Cached in the smallest integer type, because a leaderboard has many runs of the same
    tasks.
    """
    drawn = np.random.Generator(np.random.PCG64(seed)).multinomial(
        count, np.full(count, 1 / count), resamples
    )
    return drawn.astype(np.min_scalar_type(int(drawn.max(initial=0))))

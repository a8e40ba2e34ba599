"""Corpus scores from per-sample statistics: computed from their sum, never as a mean of scores."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.base import Array, Metric


def corpus_score(metric: Metric, statistics: Array) -> float:
    """The score of all samples, whose statistics are ``(n, metric.width)``.

    Raises:
        UsageError: the shape does not fit, or there is no sample (an empty corpus does not score 0).
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if statistics.ndim != 2 or statistics.shape[1] != metric.width:
        raise UsageError(f"{metric.name}: statistics have shape {statistics.shape}, expected (n, {metric.width})")
    if not len(statistics):
        raise UsageError(f"{metric.name}: there is no sample to score, expected at least one")
    return float(metric.score(totals(statistics)))


def totals(statistics: Array) -> Array:
    """Column sums ``(width,)`` of ``(n, width)``, correctly rounded, so that the order of the rows does not matter.

    Raises:
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    check_finite(statistics)
    return (
        segment_sums(statistics, np.zeros(1, dtype=np.int64))[0] if len(statistics) else np.zeros(statistics.shape[1])
    )


def segment_sums(statistics: Array, begins: npt.NDArray[np.int64]) -> Array:
    """Column sums ``(segments, width)`` of consecutive rows, each segment from its begin to the next; none is empty.

    Correctly rounded, as `totals` has them: whole numbers are added at once, others segment by segment.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    sums = np.zeros((len(begins), statistics.shape[1]))
    if not len(begins):
        return sums
    whole = whole_columns(statistics)
    sums[:, whole] = np.add.reduceat(statistics[:, whole], begins, axis=0)
    spans = list(zip(begins.tolist(), [*begins[1:].tolist(), len(statistics)], strict=True))
    for column in np.flatnonzero(~whole):
        listed = statistics[:, column].tolist()
        sums[:, column] = [math.fsum(listed[begin:end]) for begin, end in spans]
    return sums


def check_finite(statistics: Array) -> None:
    """Raise :class:`DataError` if a statistic is not a finite number."""
    if not np.isfinite(statistics).all():
        row, column = np.argwhere(~np.isfinite(statistics))[0]
        raise DataError(f"statistic {column} of sample {row} is {statistics[row, column]}, expected a finite number")


def whole_columns(statistics: Array) -> npt.NDArray[np.bool_]:
    """Which columns of ``(n, width)`` have whole numbers whose sums are exact in any order (below 2**53)."""
    columns = np.ascontiguousarray(statistics.T)
    largest = np.abs(columns).max(axis=1, initial=0.0) * len(statistics)
    whole: npt.NDArray[np.bool_] = (columns == np.floor(columns)).all(axis=1) & (largest < 2**53)
    return whole

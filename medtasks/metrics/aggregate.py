"""Corpus scores from per-sample statistics: computed from their sum, never as a mean of scores."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from medtasks.errors import DataError, UsageError
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
    columns = zip(statistics.T, whole_columns(statistics), strict=True)
    return np.array([column.sum() if exact else math.fsum(column.tolist()) for column, exact in columns])


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

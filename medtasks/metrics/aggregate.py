"""Corpus scores, overall and per group, from per-sample statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from medtasks.errors import DataError, UsageError
from medtasks.metrics.base import Array, Metric


@dataclass(frozen=True)
class GroupScore:
    """A corpus score and the number of samples behind it."""

    score: float
    samples: int


@dataclass(frozen=True)
class Aggregate:
    """The score over all samples and, by sorted key, over each group; a group without samples is absent."""

    overall: GroupScore
    groups: dict[str, GroupScore]


def aggregate(metric: Metric, statistics: Array, groups: Sequence[str | Iterable[str]] | None = None) -> Aggregate:
    """Score the pooled samples, and each group's: always of summed statistics, never a mean of scores.

    Args:
        metric: whose statistics these are.
        statistics: ``(n, metric.width)``.
        groups: for each sample one key or several (a key named twice counts once, none at all is allowed).

    Raises:
        UsageError: the shapes do not fit, or there is no sample (a score of nothing is not 0).
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if statistics.ndim != 2 or statistics.shape[1] != metric.width:
        raise UsageError(f"{metric.name}: statistics have shape {statistics.shape}, expected (n, {metric.width})")
    if not len(statistics):
        raise UsageError(f"{metric.name}: there is no sample to score, expected at least one")
    overall = _score(metric, statistics)
    if groups is None:
        return Aggregate(overall, {})
    if len(groups) != len(statistics):
        raise UsageError(f"{metric.name}: {len(groups)} group entries for {len(statistics)} samples, expected as many")
    members: dict[str, list[int]] = {}
    for row, keys in enumerate(groups):
        for key in {keys} if isinstance(keys, str) else set(keys):
            members.setdefault(key, []).append(row)
    return Aggregate(overall, {key: _score(metric, statistics[members[key]]) for key in sorted(members)})


def totals(statistics: Array) -> Array:
    """Column sums ``(width,)`` of ``(n, width)``, the same for every order of the rows.

    ``math.fsum`` rounds the exact sum once; sums of whole numbers below 2**53 are exact either way, and
    numpy's are faster.

    Raises:
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if not np.isfinite(statistics).all():
        row, column = np.argwhere(~np.isfinite(statistics))[0]
        raise DataError(f"statistic {column} of sample {row} is {statistics[row, column]}, expected a finite number")
    columns = zip(statistics.T, whole_columns(statistics), strict=True)
    return np.array([column.sum() if exact else math.fsum(column.tolist()) for column, exact in columns])


def whole_columns(statistics: Array) -> npt.NDArray[np.bool_]:
    """Which columns of ``(n, width)`` hold whole numbers whose sums are exact, in whatever order they are added."""
    columns = np.ascontiguousarray(statistics.T)
    largest = np.abs(columns).max(axis=1, initial=0.0) * len(statistics)
    found: npt.NDArray[np.bool_] = (columns == np.floor(columns)).all(axis=1) & (largest < 2**53)
    return found


def _score(metric: Metric, statistics: Array) -> GroupScore:
    return GroupScore(float(metric.score(totals(statistics))), len(statistics))

"""Pairwise comparisons of models on the same items: differences with intervals, tests, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from medtasks.errors import UsageError
from medtasks.metrics import get_metric, totals
from medtasks.metrics.base import Array
from medtasks.results.column import without_value
from medtasks.stats import (
    ClusteredScore,
    PairedDifference,
    clustered_score,
    few_clusters,
    holm,
    joint_resamples,
    paired_difference,
)

from .board import Pair

CONFIDENCE = 0.95
SEED = 0
LEVEL = 0.05
"""Two models differ significantly if Holm's p-value is at most this."""
VERDICTS = ("accuracy", "exact_match", "judged_strict")
"""Metrics that score an answer as right or wrong."""

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ModelTable:
    """One model's statistics ``(items, width)``; rows without a value do not count (`medtasks.results.table`)."""

    model: str
    table: Array

    @cached_property
    def missing(self) -> Mask:
        """Rows that do not count."""
        return without_value(self.table)

    @property
    def zeroed(self) -> Array:
        """The table with zeros in the rows that do not count, so that sums ignore them."""
        return np.where(self.missing[:, None], 0.0, self.table) if self.missing.any() else self.table


@dataclass(frozen=True)
class ModelTables:
    """Statistics of several models for one metric on the same items, with the cluster of each item.

    Raises:
        UsageError: statistics do not have the shape of the items and the metric.
    """

    metric: str
    clusters: Sequence[str]
    tables: Sequence[ModelTable]

    def __post_init__(self) -> None:
        shape = (len(self.clusters), get_metric(self.metric).width)
        for one in self.tables:
            if one.table.shape != shape:
                found = f"statistics of {self.metric} have shape {one.table.shape}"
                raise UsageError(f"{one.model}: {found}, expected {shape}")

    def value(self, model: ModelTable) -> float:
        """The model's score over its own items, as in its run; NaN without any."""
        return float(get_metric(self.metric).score(totals(model.zeroed)))

    def counting(self) -> ModelTables:
        """The tables without items that count for no model, so that they and their clusters are not resampled."""
        counts = np.zeros(len(self.clusters), dtype=bool)
        for one in self.tables:
            counts |= ~one.missing
        if counts.all():
            return self
        rows = np.flatnonzero(counts)
        clusters = [self.clusters[row] for row in rows.tolist()]
        return ModelTables(self.metric, clusters, [ModelTable(one.model, one.table[rows]) for one in self.tables])


@dataclass(frozen=True)
class Compared:
    """``resampled`` are the scores of each model, in order, in the same cluster resamples; ``pairs`` are all pairs,
    the earlier model first, and ``found`` their differences."""

    resampled: Array
    pairs: tuple[Pair, ...]
    found: tuple[PairedDifference, ...]


def compare_models(models: ModelTables, *, resamples: int = 1000) -> Compared:
    """Compare every pair of models on the items for which both have a value.

    Differences, intervals and tests are those of `medtasks.stats.paired_difference`; Holm's correction is over all
    pairs. The resamples, for rank intervals, are of whole clusters (`medtasks.stats.joint_resamples`, seed 0).
    """
    models = models.counting()
    sides = _Sides(models)
    places = [(one, two) for one in range(len(models.tables)) for two in range(one + 1, len(models.tables))]
    found = [paired_difference(*sides.of(*place), CONFIDENCE) for place in places]
    pairs = [_pair(models, place, sides.both(*place), one) for place, one in zip(places, found, strict=True)]
    score = get_metric(models.metric).score
    tables = [(one.zeroed, score) for one in models.tables]
    return Compared(
        resampled=joint_resamples(tables, models.clusters, resamples=resamples, seed=SEED).scores,
        pairs=with_holm(pairs),
        found=tuple(found),
    )


class _Sides:
    """Both sides of a pair on their common items; computed once per model if all its items are common."""

    def __init__(self, models: ModelTables) -> None:
        number = {name: code for code, name in enumerate(sorted(set(models.clusters)))}
        self._clusters = np.array([number[name] for name in models.clusters], dtype=np.int64)
        self._score = get_metric(models.metric).score
        self._tables = [one.table for one in models.tables]
        self._counts = [~one.missing for one in models.tables]
        self._own = [self._side(number, np.flatnonzero(counts)) for number, counts in enumerate(self._counts)]

    def of(self, first: int, second: int) -> tuple[ClusteredScore, ClusteredScore]:
        if np.array_equal(self._counts[first], self._counts[second]):
            return self._own[first], self._own[second]
        both = self.both(first, second)
        return self._side(first, both), self._side(second, both)

    def both(self, first: int, second: int) -> Rows:
        return np.flatnonzero(self._counts[first] & self._counts[second])

    def _side(self, model: int, rows: Rows) -> ClusteredScore:
        return clustered_score(self._tables[model].take(rows, axis=0), self._clusters[rows], self._score)


def _pair(models: ModelTables, place: tuple[int, int], both: Rows, found: PairedDifference) -> Pair:
    one, other = (models.tables[number] for number in place)
    if len(both) and math.isfinite(found.difference):
        return pair_of((one.model, other.model), models.metric, (one.table, other.table), both, found)
    return Pair(
        first=one.model,
        second=other.model,
        items=0,
        clusters=0,
        difference=models.value(one) - models.value(other),
        low=None,
        high=None,
        p_value=None,
        p_holm=None,
        reason="no item has a value from both; the difference is between scores over different items",
    )


def pair_of(
    names: tuple[str, str], metric: str, tables: tuple[Array, Array], both: Rows, found: PairedDifference
) -> Pair:
    """The pair for the difference ``found`` between two models, whose statistics ``(items, width)`` are in ``tables``;
    ``both`` are the rows that count for both. Holm's correction comes later."""
    wins, losses = _wins(*(table.take(both, axis=0) for table in tables)) if metric in VERDICTS else (None, None)
    return Pair(
        first=names[0],
        second=names[1],
        items=len(both),
        clusters=found.clusters,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        p_holm=None,
        wins=wins,
        losses=losses,
        reason=found.reason,
    )


def with_holm(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with p-values corrected over all of them, and with warnings about too few clusters."""
    adjusted = holm([pair.p_value for pair in pairs])
    tests = sum(p is not None for p in adjusted)
    return tuple(
        pair.model_copy(update={"p_holm": p, "warning": few_clusters(pair.clusters, tests)})
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def _wins(first: Array, second: Array) -> tuple[int, int] | tuple[None, None]:
    """Items that only the first and only the second has right; None if an item was asked several times."""
    for table in (first, second):
        if not ((table[:, 1] == 1).all() and ((table[:, 0] == 0) | (table[:, 0] == 1)).all()):
            return None, None
    surplus = first[:, 0] - second[:, 0]
    return int((surplus > 0).sum()), int((surplus < 0).sum())

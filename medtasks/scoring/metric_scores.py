"""One metric over one group of items: its value and interval, coverage and bounds, or why there is
no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from medtasks.core.errors import MedtasksError
from medtasks.metrics.base import Array, Metric, check_finite, segment_begins, segment_sums, totals
from medtasks.metrics.registry import bounds_of
from medtasks.scoring.columns import ItemState, MetricColumn, Rows
from medtasks.scoring.scores import MetricScore, Repeats
from medtasks.stats.intervals import ClusteredItems, Interval, score_interval
from medtasks.stats.student import student_interval


@dataclass(frozen=True)
class Coverage:
    """How many of the ``items`` that a metric applies to are ``answered``, of these lack the metric
    (``absent``), have a ``known`` value, involve a judge (``pending``), and still await their
    verdict (``awaiting``).
    """

    items: int
    answered: int
    absent: int
    known: int
    pending: int
    awaiting: int

    @classmethod
    def of(cls, column: MetricColumn) -> Coverage:
        """The coverage of the metric's values in ``column``."""
        states = column.state[column.applies]
        counts = np.bincount(states, minlength=len(ItemState)).tolist()
        items = len(states)
        answered = items - counts[ItemState.FAILED]
        awaiting = counts[ItemState.AWAITING]
        pending = awaiting + counts[ItemState.PENDING]
        known_items = int(np.count_nonzero(column.known & column.applies))
        return cls(
            items=items,
            answered=answered,
            absent=answered - pending - known_items,
            known=known_items,
            pending=pending,
            awaiting=awaiting,
        )

    def reason(self, threshold: float, unavailable: Callable[[], str | None]) -> str | None:
        """Why there is no value; None if there is one. ``unavailable`` gives the reason for a
        metric that is not computed; ``threshold`` is the share of the items that needs a
        verdict.
        """
        if not self.items:
            return "it applies to no item here"
        if not self.answered:
            return f"none of {self.items} items is answered"
        if self.absent:
            cause = unavailable() or "the run that made these samples could not compute it"
            if self.known or self.pending:
                return f"{self.absent} of {self.answered} samples lack it: {cause}"
            return cause
        if self.awaiting and self.known < threshold * self.answered:
            return f"{self.awaiting} of {self.items} items await a judge"
        if not self.known:
            return f"none of {self.items} items has a verdict"
        return None


def score_group(
    metric: Metric,
    column: MetricColumn,
    clusters: Rows,
    threshold: float,
    unavailable: Callable[[], str | None],
) -> MetricScore:
    """The metric over the items of ``column``, whose ``clusters`` are ascending; for the rest see
    `Coverage.reason`.
    """
    coverage = Coverage.of(column)
    reason = coverage.reason(threshold, unavailable)
    is_incomplete = reason is None and coverage.known < threshold * coverage.items
    without_value = _score_without_value(
        metric, column, coverage, reason=reason, is_incomplete=is_incomplete
    )
    if reason is not None:
        return without_value
    items = _known_items(column, clusters)
    value = score_of(metric, items.statistics)
    if math.isnan(value):
        return without_value.model_copy(update={"reason": "it is undefined for so few clusters"})
    is_distance = getattr(metric, "is_distance", False)
    interval = score_interval(metric.score, items, bounds_of(metric.name), is_distance=is_distance)
    update = {"value": value, "repeats": _repeats(metric, column), **interval_fields(interval)}
    return without_value.model_copy(update=update)


def _score_without_value(
    metric: Metric,
    column: MetricColumn,
    coverage: Coverage,
    *,
    reason: str | None,
    is_incomplete: bool,
) -> MetricScore:
    """The score of ``column`` with its signature, coverage and bounds only."""
    judges = column.judges_of(np.flatnonzero(column.applies))
    signature_parts = [metric.signature]
    for judge in judges:
        signature_parts.append(f"judge:{judge}")
    involves_judge = bool(coverage.pending or judges)
    has_failed = coverage.answered < coverage.items
    bounds = None
    if has_failed or involves_judge:
        bounds = _bounds(metric, column)
    return MetricScore(
        value=None,
        interval=None,
        samples=coverage.items,
        signature="|".join(signature_parts),
        reason=reason,
        answered=coverage.answered if has_failed else None,
        judged=coverage.known if involves_judge else None,
        bounds=bounds,
        incomplete=is_incomplete,
    )


def interval_fields(interval: Interval) -> dict[str, Any]:
    """The fields of a score, or of a reliability bin, that come from its interval."""
    ends = None
    if interval.low is not None and interval.high is not None:
        ends = (interval.low, interval.high)
    return {"interval": ends, "interval_method": interval.method, "reason": interval.reason}


def score_of(metric: Metric, statistics: Array) -> float:
    """The score of all these items."""
    return float(scores_of_sums(metric, totals(statistics)[None])[0])


def scores_of_sums(metric: Metric, sums: Array) -> Array:
    """The scores of sums ``(..., width)``.

    Raises:
        MedtasksError: the metric's scores are not of shape ``(...)``.
    """
    scores = np.asarray(metric.score(sums))
    if scores.shape != sums.shape[:-1]:
        raise MedtasksError(
            f"metric {metric.name}: `score` returns shape {scores.shape} for sums of shape "
            f"{sums.shape}, expected {sums.shape[:-1]}; make it work on the last axis."
        )
    return scores


def _known_items(column: MetricColumn, clusters: Rows) -> ClusteredItems:
    """The items with a known value."""
    is_known = column.applies & column.known
    statistics = column.statistics
    # if all are known, a copy would only cost memory: tens of megabytes in large runs
    if not is_known.all():
        statistics, clusters = statistics[is_known], clusters[is_known]
    check_finite(statistics)
    begins = segment_begins(clusters)
    return ClusteredItems(statistics, begins, segment_sums(statistics, begins))


def _bounds(metric: Metric, column: MetricColumn) -> tuple[float, float] | None:
    """The scores with all items that have no value wrong, and with all of them right; None if an
    item has no range.
    """
    rows = np.flatnonzero(column.applies)
    low, high = column.bounds(rows)
    if not len(rows) or np.isnan(low).any() or np.isnan(high).any():
        return None
    return score_of(metric, low), score_of(metric, high)


def _repeats(metric: Metric, column: MetricColumn) -> Repeats | None:
    """The score of each repeat of the questions, and their spread; None without repeats."""
    if column.repeats is None:
        return None
    repeats = column.repeats[column.applies]
    sums = totals(repeats.reshape(len(repeats), -1)).reshape(repeats.shape[1:])
    values = scores_of_sums(metric, sums).tolist()
    return Repeats(values=values, **student_interval(values))

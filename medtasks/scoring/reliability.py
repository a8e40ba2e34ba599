"""Accuracy by confidence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from medtasks.metrics.base import Array, MeanMetric, totals
from medtasks.metrics.confidence import (
    BINS,
    ECE,
    GIVEN,
    accuracy_at,
    cases,
    percents_of_bin,
    reasons,
)
from medtasks.scoring.columns import Rows
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.metric_scores import interval_fields
from medtasks.scoring.scores import Reliability, ReliabilityBin
from medtasks.stats.intervals import Bounds, ClusteredItems, score_interval

_MEAN = MeanMetric().score
_SHARE: Bounds = (0.0, 1.0)
_CURVE_COVERAGES = tuple(tenths / 10 for tenths in range(1, 11))
"""The shares of the answers, most confident first, whose accuracy the curve shows."""


def reliability_of(table: ItemTable) -> Reliability | None:
    """Accuracy by confidence; None without any confidence."""
    if ECE not in table.metrics or GIVEN not in table.metrics:
        return None
    column = table.column(ECE)
    rows = np.flatnonzero(column.known & table.complete)
    if not len(rows):
        return None
    statistics = column.statistics[rows]
    sums = totals(statistics)
    return Reliability(
        without=_reasons(table),
        bins=tuple(_bins(statistics, table.codes[rows])),
        curve=tuple(float(accuracy_at(sums, coverage)) for coverage in _CURVE_COVERAGES),
    )


def _reasons(table: ItemTable) -> dict[str, int]:
    """How many answers have no confidence, by reason."""
    column = table.column(GIVEN)
    rows = np.flatnonzero(column.known & table.complete)
    return reasons(totals(column.statistics[rows]).tolist())


def _bins(statistics: Array, clusters: Rows) -> Iterator[ReliabilityBin]:
    """The bins that have an answer, from the statistics ``(answers, 202)`` of the calibration
    error: 1 at the answer's percent, then the same again for right answers only
    (`medtasks.metrics.confidence.case`).
    """
    counts, right = cases(statistics)
    for number in range(BINS):
        percents = percents_of_bin(number)
        counts_in_bin, right_in_bin = counts[:, percents], right[:, percents]
        # one row per answer: whether it is in the bin and right, and whether it is in the bin
        pairs = np.stack([right_in_bin.sum(axis=1), counts_in_bin.sum(axis=1)], axis=-1)
        if not pairs[:, 1].any():
            continue
        sum_of_percents = float((counts_in_bin @ percents).sum())
        yield _bin(number, pairs, sum_of_percents, clusters)


def _bin(number: int, pairs: Array, sum_of_percents: float, clusters: Rows) -> ReliabilityBin:
    """One bin, from whether each answer is ``(right, in the bin)`` and the sum of the confidences
    in the bin.

    Confidences in bin b are above b/15, up to (b + 1)/15.
    """
    answers = int(pairs[:, 1].sum())
    interval = score_interval(_MEAN, ClusteredItems.of(pairs, clusters), _SHARE)
    return ReliabilityBin(
        low=number / BINS,
        high=(number + 1) / BINS,
        answers=answers,
        confidence=sum_of_percents / 100 / answers,
        accuracy=float(_MEAN(totals(pairs))),
        interval=interval_fields(interval)["interval"],
    )

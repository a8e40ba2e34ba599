"""Accuracy by confidence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from medtasks.metrics.base import Array, MeanMetric, totals
from medtasks.metrics.confidence import (
    BIN_OF,
    BINS,
    ECE,
    GIVEN,
    PERCENT,
    accuracy_at,
    cases,
    reasons,
)
from medtasks.scoring.columns import Rows
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.metric_scores import interval_fields
from medtasks.scoring.scores import Reliability, ReliabilityBin
from medtasks.stats.intervals import Bounds, ClusteredItems, score_interval

_MEAN = MeanMetric().score
_SHARE: Bounds = (0.0, 1.0)


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
        curve=tuple(float(accuracy_at(sums, tenths / 10)) for tenths in range(1, 11)),
    )


def _reasons(table: ItemTable) -> dict[str, int]:
    """How many answers have no confidence, by reason."""
    column = table.column(GIVEN)
    rows = np.flatnonzero(column.known & table.complete)
    return reasons(totals(column.statistics[rows]).tolist())


def _bins(statistics: Array, clusters: Rows) -> Iterator[ReliabilityBin]:
    """The bins that have an answer."""
    counts, right = cases(statistics)
    for place in range(BINS):
        in_bin = place == BIN_OF
        right_in_bin = right[:, in_bin].sum(axis=1)
        counts_in_bin = counts[:, in_bin].sum(axis=1)
        answers = int(counts_in_bin.sum())
        if not answers:
            continue
        pairs = np.stack([right_in_bin, counts_in_bin], axis=-1)
        percents = float((counts[:, in_bin] @ PERCENT[in_bin]).sum())
        interval = score_interval(_MEAN, ClusteredItems.of(pairs, clusters), _SHARE)
        yield ReliabilityBin(
            low=place / BINS,
            high=(place + 1) / BINS,
            answers=answers,
            confidence=percents / 100 / answers,
            accuracy=float(_MEAN(totals(pairs))),
            interval=interval_fields(interval)["interval"],
        )

"""The interval of one score."""

from __future__ import annotations

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Clusters, Score
from medtasks.stats.intervals import Bounds, ClusteredItems, Interval, score_interval

SHARE: Bounds = (0.0, 1.0)


def interval_of(
    statistics: Array, clusters: Clusters, score: Score, bounds: Bounds | None = SHARE
) -> Interval:
    """The interval of the score of these statistics ``(n, width)``."""
    return score_interval(score, ClusteredItems.of(statistics, clusters), bounds)

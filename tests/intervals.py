"""The interval of one score."""

from __future__ import annotations

from collections.abc import Sequence

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Interval, Score, cluster_totals, joint_intervals


def cluster_bootstrap(
    statistics: Array, clusters: Sequence[str], score: Score, resamples: int = 1000, seed: int = 0
) -> Interval:
    """The interval of the score of these statistics ``(n, width)``."""
    return joint_intervals([(cluster_totals(statistics, clusters), score)], resamples=resamples, seed=seed)[0]

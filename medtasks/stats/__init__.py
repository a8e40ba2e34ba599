"""Uncertainty of corpus scores: clustered samples (images, patients), paired comparisons, rankings, repeated runs."""

from __future__ import annotations

from medtasks.stats.bootstrap import (
    Interval,
    Resamples,
    cluster_bootstrap,
    cluster_totals,
    clustered_standard_error,
    joint_intervals,
    joint_resamples,
)
from medtasks.stats.flips import sign_flip_p
from medtasks.stats.paired import (
    FEW_CLUSTERS,
    ClusteredScore,
    PairedDifference,
    clustered_score,
    few_clusters,
    holm,
    paired_difference,
)
from medtasks.stats.ranks import RankInterval, compact_letters, normalised_ranks, rank_intervals
from medtasks.stats.student import detectable_difference, student_interval

__all__ = [
    "FEW_CLUSTERS",
    "ClusteredScore",
    "Interval",
    "PairedDifference",
    "RankInterval",
    "Resamples",
    "cluster_bootstrap",
    "cluster_totals",
    "clustered_score",
    "clustered_standard_error",
    "compact_letters",
    "detectable_difference",
    "few_clusters",
    "holm",
    "joint_intervals",
    "joint_resamples",
    "normalised_ranks",
    "paired_difference",
    "rank_intervals",
    "sign_flip_p",
    "student_interval",
]

"""Uncertainty of corpus scores: samples that come in clusters (images, patients), models compared on the same samples,
rankings, and repeated runs."""

from __future__ import annotations

from medtasks.stats.bootstrap import (
    Interval,
    Resamples,
    cluster_bootstrap,
    clustered_standard_error,
    joint_resamples,
)
from medtasks.stats.holm import holm
from medtasks.stats.mcnemar import McNemar, mcnemar
from medtasks.stats.paired import PairedDifference, paired_bootstrap, paired_difference
from medtasks.stats.power import detectable_difference
from medtasks.stats.ranks import RankInterval, compact_letters, normalised_ranks, rank_intervals
from medtasks.stats.student import student_interval

__all__ = [
    "Interval",
    "McNemar",
    "PairedDifference",
    "RankInterval",
    "Resamples",
    "cluster_bootstrap",
    "clustered_standard_error",
    "compact_letters",
    "detectable_difference",
    "holm",
    "joint_resamples",
    "mcnemar",
    "normalised_ranks",
    "paired_bootstrap",
    "paired_difference",
    "rank_intervals",
    "student_interval",
]

"""Do 95 % intervals hold the truth in 95 of 100 studies? Simulated studies of clustered answers, ICC 0.3."""

from __future__ import annotations

from functools import cache

import numpy as np

from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.stats.bootstrap import TAILS, joint_resamples

MEAN = get_metric("accuracy").score
STUDIES, CLUSTERS, RATE, ICC = 600, 250, 0.6, 0.3
SIZES = np.tile([2, 4, 6, 8, 10], CLUSTERS // 5)  # questions per image
IMAGES = np.repeat([f"image{i:03d}" for i in range(CLUSTERS)], SIZES)


@cache
def studies() -> tuple[Array, ...]:
    """Right answers of beta-binomial images: the rates' beta has ``a + b = 1/ICC - 1``."""
    draw = np.random.default_rng(20)
    both = 1 / ICC - 1
    rates = draw.beta(RATE * both, (1 - RATE) * both, size=(STUDIES, CLUSTERS))
    right = draw.random((STUDIES, len(IMAGES))) < rates.repeat(SIZES, axis=1)
    return tuple(np.column_stack([answers, np.ones(len(IMAGES))]) for answers in right.astype(float))


def coverage(clusters: list[str], resamples: int) -> float:
    """The share of studies whose interval holds the true rate. One set of draws serves all studies."""
    drawn = joint_resamples([(study, MEAN) for study in studies()], clusters, resamples=resamples)
    low, high = np.quantile(drawn, TAILS, axis=1)
    return float(np.mean((low <= RATE) & (high >= RATE)))


def test_cluster_intervals_cover_at_their_level() -> None:
    assert 0.93 <= coverage(IMAGES.tolist(), resamples=1000) <= 0.97


def test_intervals_that_ignore_clusters_are_too_sure() -> None:
    assert coverage([str(i) for i in range(len(IMAGES))], resamples=400) < 0.85

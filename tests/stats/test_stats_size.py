"""Does the one test keep its level with few clusters, and find what is there? Simulated studies;
the whole table is printed by ``performance/paired_test.py`` and stands in docs/statistics.md.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from simulated import HEAVY, UNEQUAL, Rates, Study, alike, apart, skewed, studies

METRICS = ("accuracy", "bleu")
CLUSTERS = (4, 8, 15, 30, 200)
STUDIES = 800
QUICK = [("accuracy", 8), ("accuracy", 30), ("bleu", 8)]


@cache
def equal_models(metric: str, clusters: int) -> list[Study]:
    return list(studies(STUDIES, clusters, metric=metric, rates=alike()))


def rejected(found: list[Study]) -> float:
    return float(np.mean([study.rejected for study in found]))


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("clusters", CLUSTERS)
def test_equal_models_are_told_apart_in_no_more_than_5_of_100_studies(
    metric: str, clusters: int
) -> None:
    """Unequal clusters of like answers. 0.065 is 5 % and twice the standard error of so many
    studies.
    """
    size = rejected(equal_models(metric, clusters))
    assert size <= 0.065
    assert size >= {4: 0.0, 8: 0.015}.get(clusters, 0.025)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("clusters", "least"), [(4, 0.0), (8, 0.17), (30, 0.7)])
def test_a_lead_of_a_quarter_is_found(metric: str, clusters: int, least: float) -> None:
    """Rates of 0.75 against 0.5; four clusters find nothing, and cannot."""
    power = rejected(list(studies(200, clusters, metric=metric, rates=apart(0.75, 0.5), seed=1)))
    assert power >= least
    assert clusters > 4 or power == 0


@pytest.mark.parametrize(
    ("clusters", "sizes", "rates"),
    [(8, HEAVY, alike()), (200, UNEQUAL, skewed)],
    ids=["one large cluster", "skewed"],
)
def test_models_that_are_equal_on_average_are_told_apart_no_more_often(
    clusters: int, sizes: str, rates: Rates
) -> None:
    assert rejected(list(studies(STUDIES, clusters, sizes=sizes, rates=rates, seed=2))) <= 0.065


@pytest.mark.parametrize(
    ("metric", "clusters"),
    [
        pytest.param(
            metric, clusters, marks=() if (metric, clusters) in QUICK else pytest.mark.slow
        )
        for metric in METRICS
        for clusters in CLUSTERS[1:]
    ],
)
def test_intervals_hold_the_truth(metric: str, clusters: int) -> None:
    coverage = np.mean([study.covers(0.0) for study in equal_models(metric, clusters)])
    assert coverage >= 0.935

"""When a comparison is warned of beyond few clusters; the simulations are in
performance/coverage_tests.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.scoring.comparisons import compare_statistics
from medtasks.stats.cautions import UNEVEN, UNLIKE_COVERAGE, filled_clusters
from medtasks.stats.paired import PairedDifference, clustered_score, paired_difference


def answers(rate: float, sizes: list[int], seed: int) -> Array:
    """Right answers and questions in clusters of these sizes."""
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.binomial(sizes, rate), sizes]).astype(float)


def compared(first: Array, second: Array, metric: str = "accuracy") -> PairedDifference:
    score = get_metric(metric).score
    clusters = np.arange(len(first))
    return paired_difference(*(clustered_score(side, clusters, score) for side in (first, second)))


@pytest.mark.parametrize(
    ("rate", "sizes", "warned"),
    [
        (0.7, [9] * 100, False),
        (0.9, [9] * 200, False),
        (0.98, [9] * 100, True),
        (0.02, [9] * 100, True),
        (0.98, [9] * 2000, False),
        (0.6, [9] * 99 + [1000], True),
    ],
    ids=["usual", "good", "few errors", "few correct answers", "many clusters", "a giant cluster"],
)
def test_few_or_unevenly_spread_errors_are_warned_of(
    rate: float, sizes: list[int], warned: bool
) -> None:
    found = compared(answers(rate, sizes, 1), answers(rate, sizes, 2))
    assert (UNEVEN in (found.warning or "")) is warned


def test_below_20_clusters_the_number_of_clusters_is_warned_of_alone() -> None:
    found = compared(answers(0.9, [5] * 12, 1), answers(0.8, [5] * 12, 2))
    assert found.warning == "with 12 clusters, fewer than 20, only large differences are detected"


def test_models_with_the_same_answers_are_not_warned_of() -> None:
    same = answers(0.98, [5] * 50, 1)
    assert compared(same, same).warning is None


@pytest.mark.parametrize(("answered", "warned"), [(0.95, False), (0.8, False), (0.4, True)])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_score_over_far_fewer_answers_is_warned_of(
    answered: float, warned: bool, swapped: bool
) -> None:
    """A rate among answered questions, of which one model answers 95 %."""
    draw = np.random.default_rng(3)
    counts = [draw.binomial(40, share, 60) for share in (0.95, answered)]
    sides = [np.column_stack([draw.binomial(count, 0.6), count]).astype(float) for count in counts]
    found = compared(*(reversed(sides) if swapped else sides))
    assert (UNLIKE_COVERAGE in (found.warning or "")) is warned


def test_the_scarcer_outcome_fills_its_share_of_equal_clusters() -> None:
    sizes = np.array([2.0, 2, 2, 2])
    first, second = np.column_stack([[2, 2, 2, 1], sizes]), np.column_stack([[2, 2, 2, 2], sizes])
    assert filled_clusters(first, second, 2 * sizes) == pytest.approx(4 / 16)
    uneven = np.array([7.0, 1])
    half = np.column_stack([uneven / 2, uneven])
    assert filled_clusters(half, half, 2 * uneven) == pytest.approx(64 / 50 / 2)
    chrf = np.ones((10, 18))  # not a mean: a half
    assert filled_clusters(chrf, chrf, np.ones(10)) == 5


def test_the_warning_reaches_the_comparison_of_samples() -> None:
    first, second = (answers(0.98, [1] * 100, seed) for seed in (1, 2))
    found = compare_statistics("accuracy", first, second, np.arange(100))
    assert found is not None
    assert found.warning == UNEVEN
    assert "cautions" not in found.model_dump()

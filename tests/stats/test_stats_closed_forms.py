"""Repeated runs, detectable differences and Holm's correction against scipy, statsmodels and
numbers worked by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from medtasks.stats.holm import holm
from medtasks.stats.sign_flips import sign_flip_p
from medtasks.stats.student import detectable_difference, student_interval


@pytest.mark.parametrize("values", [[0.3, 0.31, 0.35], [0.0, 1.0], [0.25, 0.2, 0.3, 0.27, 0.21]])
def test_the_interval_of_runs_is_students(values: list[float]) -> None:
    found = student_interval(values)
    assert found["deviation"] == pytest.approx(stats.tstd(values), abs=1e-12)
    reference = stats.t.interval(0.95, len(values) - 1, loc=found["mean"], scale=stats.sem(values))
    assert found["interval"] == pytest.approx(reference)


def test_the_interval_of_a_few_runs() -> None:
    assert student_interval([1.0, 2.0, 3.0])["interval"] == pytest.approx(
        (-0.4841, 4.4841), abs=1e-4
    )
    assert student_interval([0.2] * 4)["interval"] == pytest.approx((0.2, 0.2))


def detectable(error: float, clusters: int = 1_000_000) -> float:
    found = detectable_difference(error, clusters)
    assert found is not None
    return found


def test_textbook_multiples_of_the_standard_error() -> None:
    assert detectable(1.0) == pytest.approx(1.959964 + 0.841621, abs=1e-4)
    assert detectable(1.0, 10) == pytest.approx(stats.t.ppf(0.975, 9) + stats.t.ppf(0.8, 9))
    assert detectable(0.0) == 0.0


@pytest.mark.parametrize("clusters", [8, 15, 30, 100])
def test_four_in_five_comparisons_find_it(clusters: int) -> None:
    """Differences of clusters with standard deviation 1: their mean has the standard error ``1 /
    sqrt(clusters)``.
    """
    lead = detectable(clusters**-0.5, clusters)
    draw = np.random.default_rng(5)
    found = np.mean([sign_flip_p(draw.normal(lead, 1, clusters)) <= 0.05 for _ in range(500)])
    assert 0.74 <= found <= 0.86


def test_where_nothing_can_be_found_no_difference_is_named() -> None:
    named = [detectable_difference(0.1, clusters) is not None for clusters in (1, 5, 6)]
    assert named == [False, False, True]


def test_tests_that_were_not_made_are_kept_and_do_not_count() -> None:
    assert holm([None, 0.02, None, 0.03]) == [None, 0.04, None, 0.04]


def test_holm_agrees_with_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    draw = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 50):
        values = np.round(draw.random(size) ** 4, 3)  # with ties
        expected = multitest.multipletests(values, method="holm")[1].tolist() if size else []
        assert holm(values.tolist()) == pytest.approx(expected)

"""The smallest difference that can be seen: textbook numbers, and what a test finds at that difference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from medtasks.errors import UsageError
from medtasks.stats.flips import sign_flip_p
from medtasks.stats.student import detectable_difference


def detectable(error: float, clusters: int = 1_000_000, **more: float) -> float:
    found = detectable_difference(error, clusters, **more)
    assert found is not None
    return found


def test_textbook_multiples_of_the_standard_error() -> None:
    assert detectable(1.0) == pytest.approx(1.959964 + 0.841621, abs=1e-4)
    assert detectable(0.02, level=0.01, power=0.9) == pytest.approx(0.02 * (2.575829 + 1.281552), abs=1e-5)
    assert detectable(1.0, 10) == pytest.approx(t.ppf(0.975, 9) + t.ppf(0.8, 9))
    assert detectable(0.0) == 0.0


@pytest.mark.parametrize("clusters", [8, 15, 30, 100])
def test_four_in_five_comparisons_find_it(clusters: int) -> None:
    """Differences of clusters with standard deviation 1: their mean has the standard error ``1 / sqrt(clusters)``."""
    lead = detectable(clusters**-0.5, clusters)
    draw = np.random.default_rng(5)
    found = np.mean([sign_flip_p(draw.normal(lead, 1, clusters)) <= 0.05 for _ in range(500)])
    assert 0.74 <= found <= 0.86


def test_where_nothing_can_be_found_no_difference_is_named() -> None:
    assert detectable_difference(0.1, 5) is None
    assert detectable_difference(0.1, 6) is not None
    assert detectable_difference(0.1, 6, level=0.05 / 10) is None
    assert detectable_difference(0.1, 1) is None


@pytest.mark.parametrize("arguments", [{"standard_error": -1.0}, {"standard_error": float("nan")}])
def test_a_standard_error_is_a_number_of_0_or_more(arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="standard_error is"):
        detectable_difference(**arguments, clusters=30)


def test_level_and_power_are_refused_where_they_make_no_test() -> None:
    with pytest.raises(UsageError, match=r"level is 0\.9 and power 0\.8"):
        detectable_difference(1.0, 30, level=0.9)

"""The smallest difference that can be seen: textbook numbers, and what a test finds at that difference."""

from __future__ import annotations

import numpy as np
import pytest

from medtasks.errors import UsageError
from medtasks.metrics import get_metric
from medtasks.stats import detectable_difference, paired_bootstrap

MEAN = get_metric("accuracy").score


def test_textbook_multiples_of_the_standard_error() -> None:
    assert detectable_difference(1.0) == pytest.approx(1.959964 + 0.841621, abs=1e-5)
    assert detectable_difference(0.02, level=0.01, power=0.9) == pytest.approx(0.02 * (2.575829 + 1.281552), abs=1e-6)
    assert detectable_difference(0.0) == 0.0


def test_four_in_five_comparisons_find_it() -> None:
    draw = np.random.default_rng(5)
    clusters = [f"c{i:03d}" for i in range(100)]
    error = 0.1  # of the mean of 100 independent differences with standard deviation 1
    found = 0
    for seed in range(300):
        apart = draw.normal(detectable_difference(error), 1, 100)
        first, second = (np.column_stack([values, np.ones(100)]) for values in (apart, np.zeros(100)))
        p_value = paired_bootstrap(first, second, clusters, MEAN, resamples=400, seed=seed).p_value
        assert p_value is not None
        found += p_value <= 0.05
    assert 0.74 <= found / 300 <= 0.86


@pytest.mark.parametrize("arguments", [{"standard_error": -1.0}, {"standard_error": float("nan")}])
def test_a_standard_error_is_a_number_of_0_or_more(arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="standard_error is"):
        detectable_difference(**arguments)


def test_level_and_power_are_refused_where_they_make_no_test() -> None:
    with pytest.raises(UsageError, match=r"level is 0\.9 and power 0\.8"):
        detectable_difference(1.0, level=0.9)

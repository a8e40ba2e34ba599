"""The interval of repeated runs against scipy and by hand."""

from __future__ import annotations

import pytest
from scipy import stats

from medtasks.errors import UsageError
from medtasks.stats.student import student_interval


@pytest.mark.parametrize("values", [[0.3, 0.31, 0.35], [0.0, 1.0], [0.2] * 4, [0.25, 0.2, 0.3, 0.27, 0.21]])
def test_the_interval_is_students(values: list[float]) -> None:
    found = student_interval(values)
    assert found["deviation"] == pytest.approx(stats.tstd(values), abs=1e-12)
    low, high = found["interval"]
    if found["deviation"] > 0:
        reference = stats.t.interval(0.95, len(values) - 1, loc=found["mean"], scale=stats.sem(values))
        assert (low, high) == pytest.approx(reference)
    else:
        assert low == high == pytest.approx(0.2)


def test_by_hand() -> None:
    """Mean 2, deviation 1, and t with one degree of freedom is the tangent: 6.3138 at 95 %."""
    found = student_interval([2 - 0.5**0.5, 2 + 0.5**0.5], confidence=0.9)
    assert (found["mean"], found["deviation"]) == pytest.approx((2, 1))
    assert found["interval"] == pytest.approx((2 - 6.313752 / 2**0.5, 2 + 6.313752 / 2**0.5))


def test_one_run_has_no_spread() -> None:
    with pytest.raises(UsageError, match=r"^a spread needs at least 2 runs, found 1$"):
        student_interval([0.5])

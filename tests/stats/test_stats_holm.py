"""Holm's correction against statsmodels and hand-worked numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from medtasks.errors import UsageError
from medtasks.stats.paired import holm


def test_by_hand() -> None:
    # sorted 0.005·4, 0.01·3, 0.03·2, 0.04·1 raised to 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_tests_that_were_not_made_are_kept_and_do_not_count() -> None:
    found = holm([None, 0.02, math.nan, 0.03])
    assert found[0] is None
    assert math.isnan(found[2])  # type: ignore[arg-type]
    assert [found[1], found[3]] == pytest.approx([0.04, 0.04])


def test_agrees_with_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    draw = np.random.default_rng(0)
    for size in (1, 2, 7, 50):
        values = np.round(draw.random(size) ** 4, 3)  # with ties
        assert holm(values.tolist()) == pytest.approx(multitest.multipletests(values, method="holm")[1].tolist())


def test_no_probability_is_refused() -> None:
    with pytest.raises(UsageError, match=r"p-value 2 is 1\.5"):
        holm([0.1, 1.5])

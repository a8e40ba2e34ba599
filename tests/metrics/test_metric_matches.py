"""Exact match and letter accuracy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from medtasks.metrics.matches import Accuracy, ExactMatch


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("  Two Polyps.\n", "two polyps.", 1),
        ("two  polyps.", "two polyps.", 0),
        ("two polyps", "two polyps.", 0),
        ("", "", 1),
        ("", "no", 0),
        ("ÄRZTE", "ärzte", 1),
    ],
)
def test_exact_match(prediction: str, reference: str, expected: int) -> None:
    assert ExactMatch().statistics(prediction, reference).tolist() == [expected, 1]


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [("B", 1), ("A", 0), ("b", 0), ("[none]", 0), ("[multiple]", 0), ("[empty]", 0)],
)
def test_accuracy_counts_every_sample(prediction: str, expected: int) -> None:
    assert Accuracy().statistics(prediction, "B").tolist() == [expected, 1]


def test_mean_of_nothing_is_undefined_not_zero() -> None:
    scores = Accuracy().score(np.array([[0.0, 0.0], [1.0, 4.0]]))
    assert math.isnan(scores[0])
    assert scores[1] == 0.25

"""Item–rest discrimination against direct computation, and its p-value against enumeration."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from medtasks.stats.item_rest import false_discovery_values, item_discrimination

RIGHT = np.array(
    [
        [1, 1, 1, 1, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1],
        [1, 0, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [0, 1, 0, 0, 0],
    ],
    dtype=bool,
)
CLUSTERS = np.array([0, 0, 1, 1, 2, 3, 3, 4])
INVERTED = 4
"""The two best models miss it, and the two worst get it."""


def test_the_difference_is_that_of_accuracies_on_other_clusters() -> None:
    found = item_discrimination(RIGHT, np.ones_like(RIGHT), CLUSTERS)
    elsewhere = RIGHT[CLUSTERS[INVERTED] != CLUSTERS].mean(axis=0)
    assert found.difference[INVERTED] == pytest.approx(
        elsewhere[[3, 4]].mean() - elsewhere[[0, 1, 2]].mean()
    )
    assert np.isnan(found.difference[3])  # everybody is right
    assert np.isnan(found.p_value[3])


def test_the_interval_is_that_of_a_clustered_mean() -> None:
    found = item_discrimination(RIGHT, np.ones_like(RIGHT), CLUSTERS)
    weights = np.array([-1 / 3, -1 / 3, -1 / 3, 1 / 2, 1 / 2])
    values = RIGHT @ weights  # the difference is the mean of these over the items
    residuals = [
        (values[cluster == CLUSTERS] - values.mean()).sum() for cluster in range(CLUSTERS.max() + 1)
    ]
    variance = 5 / 4 * sum(residual**2 for residual in residuals) / len(values) ** 2
    reach = stats.t.ppf(0.975, 4) * math.sqrt(variance)
    width = found.high[INVERTED] - found.low[INVERTED]
    assert width == pytest.approx(2 * reach)


def test_the_p_value_is_that_of_all_sets_of_right_models() -> None:
    answered = np.ones_like(RIGHT)
    answered[INVERTED, 2] = False
    found = item_discrimination(RIGHT, answered, CLUSTERS)
    counts = answered.sum(axis=0)
    accuracy = np.clip((RIGHT & answered).sum(axis=0) / counts, 0.01, 0.99)
    logits = np.log(accuracy / (1 - accuracy))
    steps = np.rint((logits - logits.min()) / 0.05)
    observed = steps[[3, 4]].sum()
    whole = inverted = 0.0
    for right in combinations([0, 1, 3, 4], 2):
        odds = math.exp(0.05 * sum(steps[model] for model in right))
        whole += odds
        if sum(steps[model] for model in right) <= observed:
            inverted += odds
    assert found.p_value[INVERTED] == pytest.approx(inverted / whole)


def test_adjusted_p_values_are_those_of_scipy() -> None:
    p_values = np.array([0.001, 0.3, 0.02, 0.04, 0.9, 0.02])
    expected = stats.false_discovery_control(p_values)
    assert false_discovery_values(p_values) == pytest.approx(expected)


@pytest.mark.slow
def test_the_test_keeps_its_level_for_questions_of_different_difficulty() -> None:
    random = np.random.default_rng(4)
    abilities = np.linspace(-0.5, 2.5, 12)
    ease = random.normal(0, 1.5, (3000, 1))
    right = random.random((3000, 12)) < 1 / (1 + np.exp(-abilities - ease))
    found = item_discrimination(right, np.ones_like(right), np.arange(3000) // 2)
    tested = found.p_value[~np.isnan(found.p_value)]
    assert np.mean(tested <= 0.05) <= 0.06
    assert np.mean(tested <= 0.2) <= 0.22

"""Scores of confidences against plain loops over the answers, scikit-learn, and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intervals import interval_of
from sklearn.metrics import brier_score_loss

from medtasks.core.errors import UsageError
from medtasks.metrics.confidence import BRIER, CONFIDENCE_METRICS, accuracy_at, case
from medtasks.metrics.registry import get_metric

ANSWERS = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=40)
Answers = list[tuple[int, bool]]


def score(name: str, answers: Answers) -> float:
    rows = np.array([case(percent, right=right) for percent, right in answers])
    return float(get_metric(name).score(rows.sum(axis=0)))


def brier(answers: Answers) -> float:
    rows = [((percent / 100 - right) ** 2, 1.0) for percent, right in answers]
    return float(get_metric(BRIER).score(np.sum(rows, axis=0)))


def plain_ece(answers: Answers) -> float:
    """Guo et al. 2017: bins (m-1)/M < p <= m/M; the weighted mean of |accuracy - confidence|."""
    total = 0.0
    for m in range(1, 16):
        inside = [
            one
            for one in answers
            if 100 * (m - 1) < 15 * one[0] <= 100 * m or (m == 1 and one[0] == 0)
        ]
        if inside:
            accuracy = sum(right for _, right in inside) / len(inside)
            stated = sum(percent for percent, _ in inside) / 100 / len(inside)
            total += len(inside) / len(answers) * abs(accuracy - stated)
    return total


def plain_aurc(answers: Answers) -> float:
    risks = []
    for percent, _ in answers:
        accepted = [right for other, right in answers if other >= percent]
        risks.append(1 - sum(accepted) / len(accepted))
    return sum(risks) / len(risks)


def plain_accuracy_at(answers: Answers, coverage: float) -> float:
    """Each answer counts with the share of it among the most confident, ties sharing alike."""
    wanted, found, left = coverage * len(answers), 0.0, coverage * len(answers)
    for level in sorted({percent for percent, _ in answers}, reverse=True):
        tied = [right for percent, right in answers if percent == level]
        taken = min(left, len(tied))
        found += taken * sum(tied) / len(tied)
        left -= taken
    return found / wanted


@settings(max_examples=150)
@given(ANSWERS, st.floats(0.05, 1.0))
def test_scores_are_those_of_plain_loops(answers: Answers, coverage: float) -> None:
    rows = np.array([case(percent, right=right) for percent, right in answers])
    found = float(accuracy_at(rows.sum(axis=0), coverage))
    assert found == pytest.approx(plain_accuracy_at(answers, coverage), abs=1e-9)
    assert score("ece", answers) == pytest.approx(plain_ece(answers), abs=1e-12)
    assert score("aurc", answers) == pytest.approx(plain_aurc(answers), abs=1e-12)
    assert score("accuracy_at_80", answers) == pytest.approx(
        plain_accuracy_at(answers, 0.8), abs=1e-12
    )
    right, stated = [one for _, one in answers], [percent / 100 for percent, _ in answers]
    assert brier(answers) == pytest.approx(
        brier_score_loss(right, stated, labels=[False, True], scale_by_half=True)
    )


def test_without_an_answer_there_is_no_score_and_a_confidence_beyond_its_range_is_refused() -> None:
    for metric in CONFIDENCE_METRICS:
        assert math.isnan(metric.score(np.zeros(metric.width)))
    for percent in (-1, 101):
        with pytest.raises(UsageError, match="expected 0 to 100"):
            case(percent, right=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ece", "aurc", "accuracy_at_80", "brier"])
def test_intervals_cover(name: str) -> None:
    """Over-confident for the calibration error (99 % sure, 70 % right), calibrated for the
    others.
    """
    levels = (55, 65, 75, 85, 95)
    truth = {
        "ece": 0.99 - 0.70,
        "aurc": float(np.mean([1 - np.mean(levels[place:]) / 100 for place in range(5)])),
        "accuracy_at_80": 0.8,
        "brier": float(np.mean([one / 100 * (1 - one / 100) for one in levels])),
    }[name]
    metric = get_metric(name)
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        rows, clusters = [], []
        for cluster in range(80):
            for _ in range(4):
                percent = 99 if name == "ece" else int(generator.choice(levels))
                right = bool(generator.random() < (0.7 if name == "ece" else percent / 100))
                gap = (percent / 100 - right) ** 2
                rows.append((gap, 1.0) if name == "brier" else case(percent, right=right))
                clusters.append(f"{cluster:03}")
        found = interval_of(np.array(rows), clusters, metric.score)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert 0.91 <= covered / 300 <= 0.99

"""Means that people would give to all answers: the estimate, its variance, interval and
difference.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from medtasks.core.errors import UsageError
from medtasks.stats.corrected_interval import corrected_difference, corrected_interval
from medtasks.stats.labelled_answers import LabelledAnswers
from medtasks.stats.prediction_powered import corrected_mean

GOLDEN = Path(__file__).parent / "golden" / "prediction_powered.json"
"""Written with ``ppi-python`` by ``training/prediction_powered_golden.py``."""
SCRIPT = Path(__file__).parents[2] / "performance" / "corrected_coverage.py"
NONE = math.nan


def answers(judged: Any, human: Any, **more: Any) -> LabelledAnswers:
    """Answers in clusters of their own and in one stratum, unless ``more`` says otherwise."""
    size = len(judged)
    labels = np.array(human, dtype=np.float64)
    arrays: dict[str, Any] = {
        "sizes": np.ones(size),
        "weights": np.where(np.isnan(labels), 0.0, 1.0),
        "strata": np.zeros(size, dtype=np.int64),
        "tasks": np.zeros(size, dtype=np.int64),
        "clusters": np.arange(size),
        "known": np.zeros(size, dtype=np.bool_),
    }
    for name, values in more.items():
        arrays[name] = np.array(values) if name != "width" else values
    return LabelledAnswers(np.array(judged, dtype=np.float64), labels, **arrays)


def observed_variance(made: LabelledAnswers) -> float:
    return float((corrected_mean(made).influences ** 2).sum())


@pytest.mark.parametrize(
    "case", json.loads(GOLDEN.read_text(encoding="utf-8")), ids=lambda case: case["name"]
)
def test_without_clusters_and_strata_it_is_ppi_python(case: dict[str, Any]) -> None:
    human = [int(digit) / 5 for digit in case["human"]]
    judged = [int(digit) / 5 for digit in case["judged"]]
    unlabelled = len(judged) - len(human)
    made = answers(judged, [*human, *[NONE] * unlabelled])
    mean = corrected_mean(made)
    # the package averages the judge over the unlabelled answers alone
    assert mean.tuning * unlabelled / len(judged) == pytest.approx(case["tuning"], abs=1e-12)
    assert mean.value == pytest.approx(case["estimate"], abs=1e-12)
    low, high = case["interval"]
    error = (high - low) / 2 / scipy.stats.norm.ppf(0.975)
    # it divides by n, we by n - 1, and it takes the variance of the verdicts from the others
    assert math.sqrt(observed_variance(made)) == pytest.approx(error, rel=0.03)


def test_two_strata_worked_by_hand() -> None:
    """Stratum a has 4 answers with the labels 1 and 0, stratum b has 2 with 1 and 1: (4 · ½ + 2 ·
    1) / 6. The judge tells no answers of a stratum apart, so λ does not matter.
    """
    made = answers(
        [1, 1, 1, 1, 0, 0],
        [1, 0, NONE, NONE, 1, 1],
        strata=[0, 0, 0, 0, 1, 1],
        weights=[2, 2, 0, 0, 1, 1],
    )
    mean = corrected_mean(made)
    assert mean.value == pytest.approx(2 / 3, abs=1e-15)
    assert mean.tuning == 1
    # deviations of ±½ weigh 2 and are multiplied by √2: (−1/6 ± √2), 2 × −1/6, 2 × 1/3
    squares = 2 * (1 / 36 + 2) + 2 / 36 + 2 / 9
    assert observed_variance(made) == pytest.approx(6 / 5 * squares / 36, abs=1e-15)


def test_the_example_of_the_page_has_these_numbers() -> None:
    """700 answers accepted and 300 rejected, of which people accept 56 of 70 and 6 of 30."""
    judged = np.repeat([1.0, 0.0], [700, 300])
    human = np.full(1000, NONE)
    human[:70] = np.repeat([1, 0], [56, 14])
    human[700:730] = np.repeat([1, 0], [6, 24])
    mean = corrected_mean(answers(judged, human, strata=(judged == 1).astype(np.int64)))
    low, high = corrected_interval(mean)
    page = (SCRIPT.parents[1] / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert f"0.3 · 6/30 = {mean.value:.2f}, with the 95 % interval\n[{low:.3f}, {high:.3f}]" in page
    assert f"The 100 labels are worth {mean.worth:.0f}:" in page


def test_the_estimate_of_every_possible_sample_averages_to_the_truth() -> None:
    """Two of each stratum, and a judge who tells its answers apart, so that λ matters little."""
    truth = np.array([1.0, 0.0, 1.0, 0.2, 0.4, 0.9, 0.0])
    strata = np.array([0, 0, 0, 1, 1, 1, 1])
    estimates = []
    for first in itertools.combinations(range(3), 2):
        for second in itertools.combinations(range(3, 7), 2):
            human = np.full(7, NONE)
            drawn = [*first, *second]
            human[drawn] = truth[drawn]
            weights = np.where(np.isnan(human), 0, np.where(strata == 0, 3 / 2, 4 / 2))
            made = answers(strata * 0.5, human, strata=strata, weights=weights)
            estimates.append(corrected_mean(made).value)
    assert np.mean(estimates) == pytest.approx(truth.mean(), abs=1e-12)


def test_the_estimate_follows_its_definition_with_strata_sizes_weights_and_clusters() -> None:
    """Against the formulas of the docstring, answer by answer."""
    draw = np.random.default_rng(5)
    size = 80
    strata = draw.integers(0, 3, size)
    sizes = draw.integers(1, 4, size).astype(np.float64)
    human = np.round(sizes * draw.random(size), 1)
    judged = np.clip(human + draw.normal(0, 0.4, size), 0, sizes)
    clusters = draw.integers(0, 15, size)
    drawn = draw.random(size) < 0.4
    weights = np.where(drawn, draw.integers(1, 4, size), 0.0)
    labels = np.where(drawn, human, NONE)
    made = answers(judged, labels, sizes=sizes, strata=strata, weights=weights, clusters=clusters)
    mean = corrected_mean(made)

    terms = {}
    value = 0.0
    for stratum in range(3):
        members = [row for row in range(size) if strata[row] == stratum]
        rated = [row for row in members if drawn[row]]
        whole = sum(sizes[row] for row in members)
        scale = whole / sum(weights[row] * sizes[row] for row in rated)
        rectifier = [human[row] - mean.tuning * judged[row] for row in rated]
        unexplained = (
            sum(scale * weights[row] * rest for row, rest in zip(rated, rectifier, strict=True))
            / whole
        )
        for row in members:
            predicted = mean.tuning * judged[row] + unexplained * sizes[row]
            value += predicted / sizes.sum()
            terms[row] = predicted
            if drawn[row]:
                inflation = math.sqrt(len(rated) / (len(rated) - 1))
                terms[row] += scale * weights[row] * (human[row] - predicted) * inflation
    assert mean.value == pytest.approx(value, abs=1e-12)
    by_cluster = dict.fromkeys(clusters.tolist(), 0.0)
    for row, term in terms.items():
        by_cluster[int(clusters[row])] += term - value * sizes[row]
    count = len(by_cluster)
    expected = count / (count - 1) * sum(term**2 for term in by_cluster.values()) / sizes.sum() ** 2
    assert observed_variance(made) == pytest.approx(expected, rel=1e-12)


def test_the_weight_of_the_judge_is_a_regression_within_0_and_1() -> None:
    draw = np.random.default_rng(3)
    truth = draw.random(400)
    judged = 0.5 * truth + 0.5 * draw.random(400)
    human = np.where(np.arange(400) < 100, truth, NONE)
    covariance = np.cov(truth[:100], judged[:100], ddof=0)[0, 1]
    tuning = corrected_mean(answers(judged, human)).tuning
    assert tuning == pytest.approx(covariance / judged.var(ddof=1), abs=1e-12)
    assert corrected_mean(answers(1 - judged, human)).tuning == 0
    assert corrected_mean(answers(judged / 3, human)).tuning == 1


def test_labels_that_never_contradict_the_judge_leave_an_interval() -> None:
    """If all are right, it is Wilson's interval of so many labels with Student's t."""
    made = answers([1] * 2000, [1] * 50 + [NONE] * 1950)
    low, high = corrected_interval(corrected_mean(made))
    quantile = scipy.stats.t.ppf(0.975, 49)
    assert high == 1
    assert low == pytest.approx(50 / (50 + quantile**2), rel=1e-3)
    # and if the judge finds 60 % right, as far again on both sides
    judged = np.tile([1.0, 1.0, 1.0, 0.0, 0.0], 400)
    agreeing = answers(judged, np.where(np.arange(2000) < 50, judged, NONE))
    low, high = corrected_interval(corrected_mean(agreeing))
    assert 0.02 < 0.6 - low < 0.08
    assert 0.02 < high - 0.6 < 0.08


def test_answers_that_rules_score_count_as_they_are() -> None:
    judged, human = [1, 0, 1, 0, 1, 0], [1, 0, 0, NONE, NONE, NONE]
    alone = corrected_mean(answers(judged, human))
    known = [False] * 6 + [True] * 4
    together = corrected_mean(answers([*judged, 0, 0, 0, 0], [*human, *[NONE] * 4], known=known))
    assert together.value == pytest.approx(0.6 * alone.value, abs=1e-12)
    assert (together.labels, together.tuning) == (3, alone.tuning)


def test_a_stratum_without_labels_joins_its_neighbour_of_the_task() -> None:
    human = [1, 0, NONE, NONE, NONE, NONE, 1, 1]
    strata = [0, 0, 0, 0, 1, 1, 0, 0]
    tasks = [0, 0, 0, 0, 0, 0, 1, 1]
    made = answers([0.5] * 8, human, strata=strata, tasks=tasks)
    assert corrected_mean(made).value == pytest.approx((6 * 0.5 + 2) / 8, abs=1e-12)
    with pytest.raises(UsageError, match="a task has 0 labelled answers, expected at least 2"):
        corrected_mean(answers([0.5] * 8, [*human[:6], NONE, NONE], strata=strata, tasks=tasks))


def test_missing_verdicts_are_filled_and_do_not_matter_where_all_are_labelled() -> None:
    human = [1, 0, 1, 1]
    complete = corrected_mean(answers([1, 0, 0, 1], human))
    missing = corrected_mean(answers([1, NONE, 0, NONE], human))
    unjudged = corrected_mean(answers([NONE] * 4, human))
    assert complete.value == missing.value == unjudged.value == 0.75
    assert unjudged.worth == pytest.approx(4)


def test_labels_of_all_answers_are_worth_no_more_than_these() -> None:
    alike = [1.0, 0.0, 1.0, 0.0]
    assert corrected_mean(answers(alike, alike)).worth == 4


def test_a_difference_is_paired_by_cluster() -> None:
    draw = np.random.default_rng(2)
    clusters = np.repeat(np.arange(40), 5)
    easy = draw.random(40)[clusters]
    truth = (draw.random(200) < easy) * 1.0
    human = np.where(np.arange(200) % 3 == 0, truth, NONE)
    first = corrected_mean(answers(truth, human, clusters=clusters))
    same = corrected_difference(first, first)
    assert (same.difference, same.p_value) == (0, 1)
    worse = corrected_mean(answers(truth * 0.5, human * 0.5, clusters=clusters))
    ahead, behind = corrected_difference(first, worse), corrected_difference(worse, first)
    assert (ahead.low, ahead.high) == pytest.approx((-behind.high, -behind.low))
    assert ahead.p_value == behind.p_value < 0.001
    apart = math.hypot(math.sqrt(first.variance), math.sqrt(worse.variance))
    assert (ahead.high - ahead.low) / 2 < 1.9 * apart


@pytest.mark.slow
def test_simulated_intervals_keep_their_bounds() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lowest coverage" in done.stdout

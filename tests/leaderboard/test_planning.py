"""Minimum detectable differences from pilot runs and from assumptions, against numbers worked out
here.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from made_runs import FAIR, GOOD, cxr, right, run
from medtasks.leaderboard.rank.pilots import intraclass_correlation, variance_components
from medtasks.leaderboard.rank.plan_basis import assumed_basis, pilot_basis
from medtasks.leaderboard.rank.planning import (
    SpreadSource,
    cluster_sizes,
    clusters_needed,
    default_metric,
    plan_task,
)
from medtasks.leaderboard.rank.power import Population, RightOrWrong, Sizes, simulated_difference
from scipy import stats
from typer.testing import CliRunner

from medtasks.cli.app import app
from medtasks.core.errors import UsageError
from medtasks.stats.sign_flips import sign_flip_p


def log_normal_sizes(clusters: int, seed: int = 0) -> Sizes:
    """Some questions in most clusters, hundreds in a few."""
    return np.ceil(np.random.default_rng(seed).lognormal(1.5, 1.2, clusters)).astype(np.int64)


def power_of(population: Population, sizes: Sizes, difference: float, studies: int = 500) -> float:
    """The share of new studies in which the paired test finds the difference."""
    draw = np.random.default_rng(99)
    found = [
        sign_flip_p(population.differences(sizes, difference, draw)) <= 0.05 for _ in range(studies)
    ]
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("sizes", "score"),
    [
        pytest.param(np.full(20, 1), 0.9, id="one question a cluster"),
        pytest.param(log_normal_sizes(50), 0.6, id="log-normal"),
        pytest.param(np.full(40, 9), 0.6, id="equal", marks=pytest.mark.slow),
        pytest.param(
            log_normal_sizes(50, 1), 0.9, id="log-normal, good models", marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.slow
def test_the_power_is_80_percent_at_the_difference_that_is_named(
    sizes: Sizes, score: float
) -> None:
    """0.05 is three standard errors of 500 studies."""
    population = RightOrWrong(score, 0.2)
    difference = simulated_difference(population, sizes)
    assert difference is not None
    assert power_of(population, sizes, difference) == pytest.approx(0.8, abs=0.055)


def test_a_few_large_clusters_count_by_the_squares_of_their_sizes() -> None:
    """The variance of a mean of 10 answers in clusters of 6, 2 and 2: of the 100 pairs 44 are in
    one cluster.
    """
    sizes = np.array([6, 2, 2])
    variance = 2 * 0.24 / 10 * (1 + (44 / 10 - 1) * 0.3)
    assert RightOrWrong(0.6, 0.3).standard_error(sizes) == pytest.approx(math.sqrt(variance))


def test_many_even_clusters_have_the_normal_distributions_difference() -> None:
    population, sizes = RightOrWrong(0.6, 0.1), np.full(1200, 5)
    error = math.sqrt(2 * 0.24 / 6000 * 1.4)
    factor = stats.t.ppf(0.975, 1199) + stats.t.ppf(0.8, 1199)
    assert simulated_difference(population, sizes) == pytest.approx(factor * error)


def test_nothing_can_be_found_with_five_clusters() -> None:
    assert simulated_difference(RightOrWrong(0.6, 0.1), np.full(5, 100)) is None
    assert simulated_difference(RightOrWrong(0.6, 0.1), np.full(6, 100)) is not None


def test_two_pilots_give_the_spread_of_their_difference() -> None:
    """60 clusters of four: the residuals' variance is that of the clusters' differences."""
    basis = pilot_basis("mi_cxr", "accuracy", GOOD, FAIR)
    differences = (right(0.8, 0) - right(0.6, 1))[:, 0].reshape(60, 4).mean(axis=1)
    error = differences.std(ddof=1) / math.sqrt(60)
    assert basis.population.standard_error(np.full(60, 4)) == pytest.approx(error, rel=0.01)
    assert basis.population.standard_error(np.full(240, 4)) == pytest.approx(error / 2, rel=0.01)
    assert 1 < basis.margin < 1.02


def test_one_pilot_gives_its_score_and_the_correlation_within_clusters() -> None:
    basis = pilot_basis("mi_cxr", "accuracy", GOOD)
    assert isinstance(basis.population, RightOrWrong)
    assert basis.population.score == pytest.approx(right(0.8, 0)[:, 0].mean())
    assert "upper bound" in basis.words


@pytest.mark.parametrize("icc", [0.0, 0.3, 0.6])
def test_the_correlation_of_unequal_clusters_is_estimated(icc: float) -> None:
    sizes = log_normal_sizes(3000)
    draw = np.random.default_rng(4)
    rates = (
        np.full(3000, 0.7)
        if icc == 0
        else draw.beta(0.7 * (1 / icc - 1), 0.3 * (1 / icc - 1), 3000)
    )
    assert intraclass_correlation(
        draw.binomial(sizes, rates).astype(float), sizes
    ) == pytest.approx(icc, abs=0.06)


@pytest.mark.parametrize(("within", "between"), [(1.0, 0.0), (0.5, 0.2), (0.0, 0.3)])
def test_variances_within_and_between_clusters_are_told_apart(
    within: float, between: float
) -> None:
    sizes = log_normal_sizes(4000)
    spread = np.sqrt(within * sizes + between * sizes.astype(float) ** 2)
    sums = np.random.default_rng(5).normal(0, spread)
    found = variance_components(sums, sizes)
    assert (found.within, found.between) == pytest.approx((within, between), abs=0.06)


def test_pilots_and_scores_without_spread_are_refused_not_planned_with() -> None:
    """A model that is always right says nothing about how models differ: 0 would detect
    anything.
    """
    for task, pilots, said in (
        ("mi_cxr", (GOOD, run("twin", [cxr(0.8, 0)])), "no spread"),
        ("mi_cxr_tel", (GOOD,), "has no mi_cxr_tel"),
        ("mi_cxr", (run("always", [cxr(2.0, 0)]),), "the pilot run shows no spread"),
    ):
        with pytest.raises(UsageError, match=said):
            pilot_basis(task, "accuracy", *pilots)
    with pytest.raises(UsageError, match="--score 1"):
        assumed_basis("mi_cxr_icr", "accuracy", 1.0)


def test_assumptions_without_a_pilot() -> None:
    assert assumed_basis("mi_cxr", "accuracy", 0.6, 0.2).population == RightOrWrong(0.6, 0.2)
    assert "median of 12 published" in assumed_basis("mi_cxr", "accuracy").words
    with pytest.raises(UsageError, match="give a pilot"):
        assumed_basis("kvasir_vqa_x1", "bleu")


def test_items_are_counted_by_cluster_once_each() -> None:
    """A streaming item has several documents."""
    documents = [{"sample_id": f"s{number}", "cluster": f"c{number // 5}"} for number in range(12)]
    documents += [
        {"sample_id": f"r{number}", "item_id": "stream", "cluster": "c9"} for number in range(3)
    ]
    assert cluster_sizes(documents).tolist() == [5, 5, 2, 1]


@pytest.mark.parametrize("difference", [0.02, 0.03])
def test_the_clusters_needed_are_the_fewest(difference: float) -> None:
    population, sizes = RightOrWrong(0.6, 0.1), np.full(1500, 5)
    needed = clusters_needed(population, sizes, simulated_difference(population, sizes), difference)
    assert needed is not None
    assert (simulated_difference(population, np.full(needed, 5)) or 1) <= difference
    assert (simulated_difference(population, np.full(needed - 1, 5)) or 1) > difference
    assert clusters_needed(population, sizes, None, 0.00001) is None


def test_sizes_follow_the_subsets_of_each_task() -> None:
    whole, half = plan_task(
        "kvasir_vqa_x1", spread=SpreadSource(score=0.5), shares=(1.0, 0.5)
    ).subsets
    assert (whole.clusters, whole.documents) == (24, 79)
    assert half.clusters == 13  # not every picture has questions of every level
    assert half.detectable is not None
    assert whole.detectable is not None
    assert half.detectable > whole.detectable


def test_the_default_metric_is_the_first_headline_score() -> None:
    found = [
        default_metric(task)
        for task in ("mi_cxr", "med_cmr_mcq", "med_cmr_open", "kvasir_vqa_x1_level1")
    ]
    assert found == ["accuracy", "accuracy", "open_total", "judged_accuracy"]


def test_the_command_says_what_to_run(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["plan", "mi_cxr", "--score", "0.5", "--difference", "5"])
    assert result.exit_code == 0
    for said in ("MEDTASKS_SUBSET=0.5@0", "A difference of 5 needs about", "the data have 28"):
        assert said in result.stdout
    assert isinstance(
        CliRunner().invoke(app, ["plan", "mi_cxr", "--share", "1.5"]).exception, UsageError
    )
    assert CliRunner().invoke(app, ["plan", "mi_cxr", "--pilot", str(tmp_path)]).exit_code == 1

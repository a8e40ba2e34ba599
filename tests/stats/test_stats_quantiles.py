"""Quantiles of clustered observations: as numpy's and scipy's, and intervals that cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from medtasks.stats.bootstrap import clustered_standard_error
from medtasks.stats.quantiles import quantile, ratio


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 200])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_value_is_numpys_inverted_distribution(count: int, share: float) -> None:
    values = np.random.default_rng(count).lognormal(size=count)
    expected = np.quantile(values, share, method="inverted_cdf")
    assert quantile(values, np.arange(count), share).value == expected


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_with_independent_values_the_interval_is_almost_that_of_scipys_test(share: float) -> None:
    count = 2001
    values = np.sort(np.random.default_rng(7).lognormal(size=count))
    estimate = quantile(values, np.arange(count), share)
    exact = stats.quantile_test(values, q=estimate.value, p=share).confidence_interval(0.95)
    for end, exact_end in ((estimate.low, exact.low), (estimate.high, exact.high)):
        ranks = np.searchsorted(values, [end, exact_end])
        assert abs(int(ranks[0]) - int(ranks[1])) <= 2


def test_an_end_that_the_data_do_not_limit_is_unknown() -> None:
    values = np.arange(1.0, 21.0)
    assert quantile(values, np.arange(20), 0.95).high is None
    assert quantile(values, np.arange(20), 0.95).low is not None
    alone = quantile(values, np.zeros(20, dtype=np.int64), 0.5)
    assert (alone.value, alone.low, alone.high) == (10.0, None, None)


def test_copies_of_a_cluster_add_no_information() -> None:
    values = np.random.default_rng(1).lognormal(size=60)
    once = quantile(values, np.arange(60), 0.5)
    repeated = quantile(np.repeat(values, 5), np.repeat(np.arange(60), 5), 0.5)
    assert repeated.low == pytest.approx(once.low, rel=0.05)
    assert repeated.high == pytest.approx(once.high, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [8, 40, 150])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_intervals_cover_with_dependent_observations(clusters: int, share: float) -> None:
    truth = math.exp(0.5 * stats.norm.ppf(share))
    generator = np.random.default_rng(clusters)
    covered = 0
    for _ in range(400):
        sizes = 1 + generator.poisson(4, clusters)
        codes = np.repeat(np.arange(clusters), sizes)
        common = generator.normal(size=clusters)[codes]
        noise = common * math.sqrt(0.5) + generator.normal(size=len(codes)) * math.sqrt(0.5)
        estimate = quantile(np.exp(0.5 * noise), codes, share)
        is_above = estimate.low is None or estimate.low <= truth
        covered += is_above and (estimate.high is None or truth <= estimate.high)
    assert 0.91 <= covered / 400 <= 1


def test_a_ratio_is_that_of_the_sums_with_students_interval() -> None:
    tokens = np.array([10.0, 30.0, 20.0])
    seconds = np.array([1.0, 2.0, 2.0])
    estimate = ratio(tokens, seconds, ["a", "b", "c"])
    error = clustered_standard_error(np.column_stack([tokens, seconds]), ["a", "b", "c"])
    assert estimate is not None
    assert error is not None
    assert estimate.value == 12.0
    assert estimate.high == pytest.approx(12.0 + stats.t.ppf(0.975, 2) * error)
    assert ratio(tokens, np.zeros(3), ["a", "b", "c"]) is None

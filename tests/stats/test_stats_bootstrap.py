"""Cluster bootstrap against resampled rows and scipy; in simulated studies its intervals hold the truth."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from intervals import cluster_bootstrap
from scipy import stats as scipy_stats

from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric, lexical_statistics
from medtasks.stats.bootstrap import TAILS, cluster_totals, clustered_standard_error, joint_intervals, joint_resamples

MEAN = get_metric("accuracy").score


def answers(clusters: int, each: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Right and wrong answers whose rate differs between clusters; the expected rate is one half."""
    draw = np.random.default_rng(seed)
    rates = draw.beta(2, 2, size=clusters).repeat(each)
    right = (draw.random(clusters * each) < rates).astype(float)
    return np.column_stack([right, np.ones(len(right))]), [f"image{i // each:03d}" for i in range(clusters * each)]


def test_equals_resampling_the_rows_with_the_same_counts() -> None:
    predictions = [f"polyp {i % 7} in the upper left of the image" for i in range(60)]
    references = [f"polyp {i % 5} in the upper right of the image" for i in range(60)]
    clusters = [f"c{i // 6}" for i in range(60)]
    for name in ("bleu", "chrf", "rougeL"):
        metric = get_metric(name)
        statistics = lexical_statistics(list(zip(predictions, references, strict=True)), [name])[name]
        drawn = np.random.Generator(np.random.PCG64(7)).multinomial(10, [0.1] * 10, size=50)
        scores = []
        for counts in drawn:
            rows = [
                row for cluster, count in enumerate(counts) for row in [*range(6 * cluster, 6 * cluster + 6)] * count
            ]
            scores.append(metric.score(statistics[rows].sum(axis=0)))
        found = cluster_bootstrap(statistics, clusters, metric.score, resamples=50, seed=7)
        assert [found.low, found.high] == pytest.approx(np.quantile(scores, [0.025, 0.975]), abs=1e-12)


def test_agrees_with_scipy_on_cluster_means() -> None:
    statistics, clusters = answers(clusters=200, each=5, seed=1)
    found = cluster_bootstrap(statistics, clusters, MEAN, resamples=4000)
    means = statistics[:, 0].reshape(200, 5).mean(axis=1)
    expected = scipy_stats.bootstrap(
        (means,), np.mean, n_resamples=4000, method="percentile", random_state=np.random.default_rng(3)
    ).confidence_interval
    assert [found.low, found.high] == pytest.approx([expected.low, expected.high], abs=0.005)


def test_rows_may_come_in_any_order_and_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics, clusters = answers(clusters=30, each=4, seed=2)
    statistics[:, 0] *= 0.1
    order = np.random.default_rng(0).permutation(len(clusters))
    expected = cluster_bootstrap(statistics, clusters, MEAN, seed=5)
    assert cluster_bootstrap(statistics[order], [clusters[i] for i in order], MEAN, seed=5) == expected
    monkeypatch.setattr("medtasks.stats.bootstrap.BLOCK", 70)
    assert cluster_bootstrap(statistics, clusters, MEAN, seed=5) == expected


def test_two_scores_of_the_same_sums_have_intervals_of_their_own() -> None:
    sums = cluster_totals(*answers(clusters=30, each=4, seed=2))
    whole, half, again = joint_intervals([(sums, MEAN), (sums, lambda totals: MEAN(totals) / 2), (sums.copy(), MEAN)])
    assert (half.low, half.high) == pytest.approx((whole.low / 2, whole.high / 2))  # type: ignore[operator]
    assert again == whole


@pytest.mark.parametrize(
    ("rows", "clusters", "reason"),
    [
        (np.ones((3, 2)), ["only"] * 3, "at least 2"),
        (np.ones((0, 2)), [], "at least 2"),
        (np.array([[0.0, 0.0], [1.0, 1.0]]), ["a", "b"], "undefined"),
    ],
    ids=["one cluster", "none", "a resample is undefined"],
)
def test_without_an_interval_there_is_a_reason(rows: Array, clusters: list[str], reason: str) -> None:
    found = cluster_bootstrap(rows, clusters, MEAN)
    assert (found.low, found.high) == (None, None)
    assert reason in str(found.reason)
    assert len(set(clusters)) > 1 or clustered_standard_error(rows, clusters) is None


def test_wrong_arguments_are_refused() -> None:
    rows = np.ones((2, 2))
    for given, error, said in (
        ((np.ones(2), ["a", "b"], MEAN), UsageError, r"shape \(2,\)"),
        ((rows, ["a"], MEAN), UsageError, "1 cluster names"),
        ((rows * np.nan, ["a", "b"], MEAN), DataError, "nan"),
    ):
        with pytest.raises(error, match=said):
            cluster_bootstrap(*given)


def test_standard_error_is_the_textbook_one_for_single_samples_and_agrees_with_the_bootstrap() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    found = clustered_standard_error(np.column_stack([values, np.ones(5)]), list("abcde"))
    assert found == pytest.approx(values.std(ddof=1) / math.sqrt(5))
    statistics, clusters = answers(clusters=200, each=6, seed=4)
    interval = cluster_bootstrap(statistics, clusters, MEAN, resamples=4000)
    width = interval.high - interval.low  # type: ignore[operator]
    assert clustered_standard_error(statistics, clusters) == pytest.approx(width / (2 * 1.96), rel=0.06)


STUDIES, CLUSTERS, RATE, ICC = 600, 250, 0.6, 0.3
SIZES = np.tile([2, 4, 6, 8, 10], CLUSTERS // 5)  # questions per image
IMAGES = np.repeat([f"image{i:03d}" for i in range(CLUSTERS)], SIZES)


@cache
def studies() -> tuple[Array, ...]:
    """Right answers of beta-binomial images: the rates' beta has ``a + b = 1/ICC - 1``."""
    draw = np.random.default_rng(20)
    both = 1 / ICC - 1
    rates = draw.beta(RATE * both, (1 - RATE) * both, size=(STUDIES, CLUSTERS))
    right = draw.random((STUDIES, len(IMAGES))) < rates.repeat(SIZES, axis=1)
    return tuple(np.column_stack([answers, np.ones(len(IMAGES))]) for answers in right.astype(float))


def coverage(clusters: list[str], resamples: int) -> float:
    """The share of studies whose interval holds the true rate. One set of draws serves all studies."""
    drawn = joint_resamples([(cluster_totals(study, clusters), MEAN) for study in studies()], resamples=resamples)
    low, high = np.quantile(drawn, TAILS, axis=1)
    return float(np.mean((low <= RATE) & (high >= RATE)))


def test_cluster_intervals_cover_at_their_level() -> None:
    assert 0.93 <= coverage(IMAGES.tolist(), resamples=1000) <= 0.97


def test_intervals_that_ignore_clusters_are_too_sure() -> None:
    assert coverage([str(i) for i in range(len(IMAGES))], resamples=400) < 0.85

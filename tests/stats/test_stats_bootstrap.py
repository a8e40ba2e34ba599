"""Cluster bootstrap and clustered standard errors against resampled rows and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric, lexical_statistics
from medtasks.stats.bootstrap import (
    TAILS,
    Score,
    cluster_totals,
    clustered_standard_error,
    joint_resamples,
)
from medtasks.stats.intervals import ClusteredItems

MEAN = get_metric("accuracy").score


def answers(clusters: int, each: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Right and wrong answers whose rate differs between clusters; the expected rate is one
    half.
    """
    draw = np.random.default_rng(seed)
    rates = draw.beta(2, 2, size=clusters).repeat(each)
    right = (draw.random(clusters * each) < rates).astype(float)
    return np.column_stack([right, np.ones(len(right))]), [
        f"image{i // each:03d}" for i in range(clusters * each)
    ]


def resampled(
    statistics: Array, clusters: list[str], score: Score, resamples: int = 1000, seed: int = 0
) -> Array:
    """The scores of the resamples."""
    return joint_resamples(
        [(cluster_totals(statistics, clusters), score)], resamples=resamples, seed=seed
    )[0]


def test_equals_resampling_the_rows_with_the_same_counts() -> None:
    predictions = [f"polyp {i % 7} in the upper left of the image" for i in range(60)]
    references = [f"polyp {i % 5} in the upper right of the image" for i in range(60)]
    clusters = [f"c{i // 6}" for i in range(60)]
    for name in ("bleu", "chrf", "rougeL"):
        metric = get_metric(name)
        statistics = lexical_statistics(list(zip(predictions, references, strict=True)), [name])[
            name
        ]
        drawn = np.random.Generator(np.random.PCG64(7)).multinomial(10, [0.1] * 10, size=50)
        scores = []
        for counts in drawn:
            rows = [
                row
                for cluster, count in enumerate(counts)
                for row in [*range(6 * cluster, 6 * cluster + 6)] * count
            ]
            scores.append(float(metric.score(statistics[rows].sum(axis=0))))
        assert resampled(statistics, clusters, metric.score, 50, seed=7) == pytest.approx(
            scores, abs=1e-12
        )


def test_agrees_with_scipy_on_cluster_means() -> None:
    statistics, clusters = answers(clusters=200, each=5, seed=1)
    ends = np.quantile(resampled(statistics, clusters, MEAN, 4000), TAILS)
    means = statistics[:, 0].reshape(200, 5).mean(axis=1)
    expected = scipy_stats.bootstrap(
        (means,),
        np.mean,
        n_resamples=4000,
        method="percentile",
        random_state=np.random.default_rng(3),
    ).confidence_interval
    assert ends == pytest.approx([expected.low, expected.high], abs=0.005)


def test_rows_may_come_in_any_order_and_blocks_do_not_change_the_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statistics, clusters = answers(clusters=30, each=4, seed=2)
    statistics[:, 0] *= 0.1
    order = np.random.default_rng(0).permutation(len(clusters))
    expected = resampled(statistics, clusters, MEAN, seed=5).tolist()
    assert (
        resampled(statistics[order], [clusters[i] for i in order], MEAN, seed=5).tolist()
        == expected
    )
    monkeypatch.setattr("medtasks.stats.bootstrap.BLOCK", 70)
    assert resampled(statistics, clusters, MEAN, seed=5).tolist() == expected


@pytest.mark.parametrize(
    ("rows", "clusters"),
    [(np.ones((3, 2)), ["only"] * 3), (np.ones((0, 2)), [])],
    ids=["one cluster", "none"],
)
def test_fewer_than_two_clusters_have_no_resamples(rows: Array, clusters: list[str]) -> None:
    assert np.isnan(resampled(rows, clusters, MEAN, 10)).all()
    assert clustered_standard_error(rows, clusters) is None


def test_wrong_arguments_are_refused() -> None:
    rows = np.ones((2, 2))
    for given, error, said in (
        ((np.ones(2), ["a", "b"]), UsageError, r"shape \(2,\)"),
        ((rows, ["a"]), UsageError, "1 cluster names"),
        ((rows * np.nan, ["a", "b"]), DataError, "nan"),
    ):
        with pytest.raises(error, match=said):
            cluster_totals(*given)
        with pytest.raises(error, match=said):
            ClusteredItems.of(*given)


def test_standard_error_is_the_textbook_one_for_single_samples_and_agrees_with_the_bootstrap() -> (
    None
):
    values = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    found = clustered_standard_error(np.column_stack([values, np.ones(5)]), list("abcde"))
    assert found == pytest.approx(values.std(ddof=1) / math.sqrt(5))
    statistics, clusters = answers(clusters=200, each=6, seed=4)
    deviation = resampled(statistics, clusters, MEAN, 4000).std()
    assert clustered_standard_error(statistics, clusters) == pytest.approx(deviation, rel=0.06)

"""Paired and joint cluster bootstrap: against the single one, scipy and sacrebleu, and where the truth is known."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats as scipy_stats

from medtasks.errors import UsageError
from medtasks.metrics import aggregate, get_metric, lexical_statistics
from medtasks.stats import (
    cluster_bootstrap,
    joint_resamples,
    paired_bootstrap,
    paired_difference,
)
from medtasks.stats.bootstrap import cluster_totals, percentile_interval

MEAN = get_metric("accuracy").score
CLUSTERS = [f"image{i // 5:02d}" for i in range(200)]


def answers(rate: float, seed: int, width: int = 1) -> np.ndarray:
    """Scores of 200 samples in 40 clusters, as mean-type statistics."""
    draw = np.random.default_rng(seed)
    right = draw.random((200, width)) < np.clip(rate + draw.normal(0, 0.2, (40, width)).repeat(5, axis=0), 0, 1)
    return np.column_stack([right, np.ones(200)])


def bounds(found) -> list[float]:  # type: ignore[no-untyped-def]
    return [found.interval.low, found.interval.high]


def test_every_entry_is_what_it_is_alone() -> None:
    draw = np.random.default_rng(4)
    tables = [draw.random((200, width)) for width in (1, 2, 1, 1, 10, 2, 300, 24)]

    def score(sums: np.ndarray) -> np.ndarray:
        return np.log(sums[..., 0]) - sums[..., -1]  # type: ignore[no-any-return]

    for resamples in (1, 60):
        drawn = joint_resamples([(table, score) for table in tables], CLUSTERS, resamples=resamples, seed=3)
        for entry, table in enumerate(tables):
            alone = cluster_bootstrap(table, CLUSTERS, score, resamples=resamples, seed=3)
            assert percentile_interval(drawn.scores[entry], drawn.clusters) == alone
            assert drawn.points[entry] == aggregate_of(table, score)


def aggregate_of(table: np.ndarray, score) -> float:  # type: ignore[no-untyped-def]
    return float(score(np.array([math.fsum(column) for column in table.T])))


def test_interval_is_that_of_a_score_that_subtracts() -> None:
    first, second = answers(0.6, 1) * 0.1, answers(0.5, 2) * 0.1
    stacked = np.hstack([first, second])
    expected = cluster_bootstrap(stacked, CLUSTERS, lambda sums: MEAN(sums[..., :2]) - MEAN(sums[..., 2:]))
    assert paired_bootstrap(first, second, CLUSTERS, MEAN).interval == expected


def test_agrees_with_scipy() -> None:
    first, second = answers(0.6, 1), answers(0.47, 2)
    found = paired_bootstrap(first, second, CLUSTERS, MEAN, resamples=8000)
    apart = (first[:, 0] - second[:, 0]).reshape(40, 5).mean(axis=1)
    expected = scipy_stats.bootstrap(
        (apart,), np.mean, n_resamples=8000, method="percentile", random_state=np.random.default_rng(0)
    )
    low, high = expected.confidence_interval
    assert found.difference == pytest.approx(apart.mean())
    assert bounds(found) == pytest.approx([low, high], abs=0.006)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.03)
    below = (expected.bootstrap_distribution <= 0).mean()
    assert 0.01 < below < 0.2
    assert found.p_value == pytest.approx(2 * below, abs=0.015)
    assert found.p_normal == pytest.approx(
        2 * scipy_stats.norm.sf(abs(apart.mean()) / expected.standard_error), abs=0.012
    )


def test_agrees_with_sacrebleu_where_samples_are_the_clusters() -> None:
    words = ["the", "polyp", "is", "seen", "in", "upper", "left", "right", "part", "of", "image", "and", "removed"]
    draw = np.random.default_rng(0)
    references = [" ".join(draw.choice(words, 12)) for _ in range(150)]

    def edited(share: float) -> list[str]:
        return [
            " ".join(w if draw.random() > share else str(draw.choice(words)) for w in r.split()) for r in references
        ]

    systems = {"first": edited(0.20), "second": edited(0.23)}
    bleu = BLEU(smooth_method="none")
    _, scores = PairedTest(list(systems.items()), {"BLEU": bleu}, [references], test_type="bs", n_samples=4000)()
    theirs = scores["BLEU"]
    metric = get_metric("bleu")
    first, second = (lexical_statistics(texts, references, ["bleu"])[0]["bleu"] for texts in systems.values())
    names = [str(i) for i in range(150)]
    found = paired_bootstrap(first, second, names, metric.score, resamples=4000)
    assert [100 * found.first, 100 * found.second] == pytest.approx([one.score for one in theirs], abs=1e-6)
    for table, one in zip((first, second), theirs, strict=True):
        alone = cluster_bootstrap(table, names, metric.score, resamples=4000)
        assert alone.low is not None
        assert alone.high is not None
        assert 50 * (alone.high - alone.low) == pytest.approx(one.ci, rel=0.06)
    # theirs is one-sided and centred, ours two-sided by inversion: the same but for skewness and the draws
    assert 0.02 < theirs[1].p_value < 0.2
    assert found.p_value == pytest.approx(2 * theirs[1].p_value, abs=0.02)


def test_order_of_samples_and_of_models() -> None:
    first, second = answers(0.6, 1) * 0.3, answers(0.5, 2) * 0.3
    order = np.random.default_rng(1).permutation(200)
    expected = paired_bootstrap(first, second, CLUSTERS, MEAN, seed=9)
    assert paired_bootstrap(first[order], second[order], [CLUSTERS[i] for i in order], MEAN, seed=9) == expected
    turned = paired_bootstrap(second, first, CLUSTERS, MEAN, seed=9)
    assert turned.difference == -expected.difference
    assert turned.p_value == expected.p_value
    assert bounds(turned) == pytest.approx([-end for end in reversed(bounds(expected))], abs=1e-12)


def test_sums_of_clusters_are_correctly_rounded() -> None:
    rows = np.array([[1e16, 1.0], [0.1, 1.0], [0.5, 1.0], [-1e16, 1.0], [0.25, 1.0]])
    assert cluster_totals(rows, ["b", "b", "a", "b", "a"]).tolist() == [[0.75, 2.0], [0.1, 3.0]]


def test_pairs_of_joint_resamples_are_what_they_are_alone() -> None:
    tables = [answers(rate, seed) * 0.7 for seed, rate in enumerate((0.4, 0.5, 0.5, 0.8))]
    drawn = joint_resamples([(table, MEAN) for table in tables], CLUSTERS, resamples=300)
    for one, two in combinations(range(4), 2):
        compared = paired_difference(drawn, one, two)
        assert compared.standard_error == pytest.approx(np.std(drawn.scores[one] - drawn.scores[two], ddof=1), rel=1e-9)
        assert compared == paired_bootstrap(tables[one], tables[two], CLUSTERS, MEAN, resamples=300)


def test_p_values_are_never_0() -> None:
    far = paired_bootstrap(answers(0.9, 1), answers(0.1, 2), CLUSTERS, MEAN, resamples=99)
    assert far.p_value == 2 / 100
    assert 0 < far.p_normal < 1e-6  # type: ignore[operator]
    same = paired_bootstrap(answers(0.5, 1), answers(0.5, 1), CLUSTERS, MEAN)
    assert (same.difference, bounds(same), same.p_value, same.p_normal) == (0.0, [0.0, 0.0], 1.0, 1.0)
    ones = np.ones((200, 2))
    certain = paired_bootstrap(ones * [0.3, 1], ones * [0.1, 1], CLUSTERS, MEAN, resamples=99)
    assert certain.p_normal == certain.p_value == 2 / 100


def test_no_test_where_there_is_no_interval() -> None:
    one = paired_bootstrap(np.ones((2, 2)), np.array([[0.0, 1.0]] * 2), ["a", "a"], MEAN)
    assert (one.difference, one.standard_error, one.p_value, one.p_normal) == (1.0, None, None, None)
    assert "found 1 cluster" in str(one.interval.reason)
    holes = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert "undefined" in str(paired_bootstrap(holes, holes, ["a", "b"], MEAN).interval.reason)
    none = joint_resamples([(np.ones((0, 2)), MEAN)], [])
    assert math.isnan(none.points[0])
    assert percentile_interval(none.scores[0], none.clusters).low is None


def test_equal_models_are_told_apart_in_five_of_a_hundred() -> None:
    """1,000 pairs of models with the same true rate, whose answers depend on the image; the same draws for all."""
    draw = np.random.default_rng(8)
    clusters = [f"c{i // 6:03d}" for i in range(900)]
    tables = []
    for _ in range(2000):
        right = draw.random(900) < draw.beta(1, 1, 150).repeat(6)
        tables.append((np.column_stack([right, np.ones(900)]).astype(float), MEAN))
    drawn = joint_resamples(tables, clusters, resamples=999)
    found = [paired_difference(drawn, pair, pair + 1) for pair in range(0, 2000, 2)]
    for p_values in ([one.p_value for one in found], [one.p_normal for one in found]):
        assert 0.03 <= np.mean([p <= 0.05 for p in p_values]) <= 0.07  # type: ignore[operator]
    assert np.mean([(one.interval.low > 0) or (one.interval.high < 0) for one in found]) <= 0.07  # type: ignore[operator]


def test_wrong_arguments_are_refused() -> None:
    rows = np.ones((2, 2))
    with pytest.raises(UsageError, match="2 cluster names"):
        paired_bootstrap(rows, rows[:1], ["a", "b"], MEAN)
    with pytest.raises(UsageError, match="confidence is 2"):
        paired_bootstrap(rows, rows, ["a", "b"], MEAN, confidence=2)
    with pytest.raises(UsageError, match="resamples is 0"):
        joint_resamples([(rows, MEAN)], ["a", "b"], resamples=0)
    with pytest.raises(UsageError, match="entry 1"):
        paired_difference(joint_resamples([(rows, MEAN)], ["a", "b"]), 0, 1)
    with pytest.raises(UsageError, match=r"shape \(2,\)"):
        joint_resamples([(np.ones(2), MEAN)], ["a", "b"])


def test_points_are_the_scores_of_aggregate() -> None:
    metric = get_metric("rougeL")
    statistics = lexical_statistics(["a polyp"] * 7, ["a polyp is seen", "no polyp"] * 3 + ["a"], ["rougeL"])[0][
        "rougeL"
    ]
    drawn = joint_resamples([(statistics, metric.score)], list("aabbccd"))
    assert drawn.points[0] == aggregate(metric, statistics).overall.score

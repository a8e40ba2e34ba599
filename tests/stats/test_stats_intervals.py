"""Intervals of single scores: against statsmodels, SciPy and a computation by hand; what holds for
all of them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intervals import interval_of
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

from medtasks.metrics.base import Array
from medtasks.metrics.registry import bounds_of, get_metric, lexical_statistics
from medtasks.stats.bootstrap import clustered_standard_error
from medtasks.stats.intervals import (
    STUDENT,
    WILSON,
    ClusteredItems,
    Interval,
    score_interval,
)
from medtasks.stats.proportions import intraclass_correlation, student

MEAN = get_metric("accuracy").score


def answers(right: list[int], sizes: list[int]) -> tuple[Array, list[str]]:
    """The statistics of right and wrong answers, and their clusters."""
    values = [
        float(place < count)
        for count, size in zip(right, sizes, strict=True)
        for place in range(size)
    ]
    clusters = [f"image{number:04d}" for number, size in enumerate(sizes) for _ in range(size)]
    return np.column_stack([values, np.ones(len(values))]), clusters


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


@pytest.mark.parametrize("right", [0, 3, 2500, 4999, 5000])
def test_with_one_question_per_cluster_and_many_of_them_it_is_wilsons_interval(right: int) -> None:
    """Student's t is then the normal distribution; the jackknife divides by n - 1."""
    found = interval_of(*answers([1] * right + [0] * (5000 - right), [1] * 5000), MEAN)
    assert ends(found) == pytest.approx(
        proportion_confint(right, 5000, method="wilson"), rel=1e-3, abs=1e-6
    )
    assert found.method == WILSON


def test_by_hand() -> None:
    """Four images with 2 of 2, 1 of 2, 1 of 2 and 0 of 2 right.

    p = 1/2; 2 clusters' worth of the rarer kind: the assumed correlation has a weight of 1 / (1 +
    (2/3)²) = 9/13. Variance between images (2 + 1/2 + 1/2 - 2) / 3 = 1/3, within (4 - 3) / 4 = 1/4:
    icc = (1/12) / (7/12) = 1/7. Design effect 1 + (2 - 1) · (9/13 · 0.3 + 4/13 · 1/7) = 1.2516. By
    the jackknife, with the scores 1/3, 1/2, 1/2 and 2/3 without each image, it is 3/4 · 1/18 · 8 /
    (1/4) = 4/3; the greater one counts, so 8 / (4/3) = 6 items. t(3) = 3.182446: ½ ± ½ · √(z / (1 +
    z)) with z = 3.182446² / 6.
    """
    found = interval_of(*answers([2, 1, 1, 0], [2, 2, 2, 2]), MEAN)
    added = 3.182446**2 / 6
    reach = math.sqrt(added / (1 + added)) / 2
    assert ends(found) == pytest.approx((0.5 - reach, 0.5 + reach), abs=1e-6)


def test_without_an_error_the_correlation_is_assumed() -> None:
    """Thirty right answers to ten images: n = 30 / (1 + 2 · 0.3), and the lower end is n / (n +
    t²).
    """
    found = interval_of(*answers([3] * 10, [3] * 10), MEAN)
    count, quantile = 30 / 1.6, float(scipy_stats.t.ppf(0.975, 9))
    assert ends(found) == pytest.approx((count / (count + quantile**2), 1.0))


def test_quantiles_are_those_of_scipy() -> None:
    for sizes in ([1, 1], [5] * 12, [1, 2, 3, 40]):
        clusters, equal = len(sizes), sum(sizes) ** 2 / sum(size**2 for size in sizes)
        expected = scipy_stats.t.ppf(0.975, max(math.sqrt(clusters * equal) - 1, 1))
        assert float(student(np.array(sizes, dtype=np.float64))) == pytest.approx(expected)
    several = student(np.array([[1.0, 1.0], [1.0, 3.0]]))
    assert several == pytest.approx([scipy_stats.t.ppf(0.975, 1)] * 2)


def test_the_correlation_is_that_of_the_analysis_of_variance() -> None:
    draw = np.random.default_rng(3)
    groups = [draw.normal(centre, 1, 6) for centre in draw.normal(0, 1, 15)]
    f_value = scipy_stats.f_oneway(*groups).statistic
    found = intraclass_correlation(
        np.array([group.sum() for group in groups]),
        np.full(15, 6.0),
        np.array(np.square(groups).sum()),
    )
    assert float(found) == pytest.approx((f_value - 1) / (f_value + 5))


def test_scores_without_bounds_have_students_interval_with_the_jackknifes_error() -> None:
    seconds = np.array([-3.0, 1.5, 2.0, 4.0, 0.5, -1.0])
    found = interval_of(np.column_stack([seconds, np.ones(6)]), list("abcdef"), MEAN, None)
    expected = scipy_stats.t.interval(0.95, 5, seconds.mean(), seconds.std(ddof=1) / math.sqrt(6))
    assert ends(found) == pytest.approx(expected)
    assert found.method == STUDENT
    same = interval_of(np.ones((6, 2)), list("abcdef"), MEAN, None)
    assert same == Interval(reason="the score is the same without any of the 6 clusters")


def test_a_score_beyond_its_bounds_counts_as_one_without() -> None:
    percent = np.array([[70.0, 1.0], [80.0, 1.0], [95.0, 1.0]])
    assert interval_of(percent, list("abc"), MEAN).method == STUDENT
    assert interval_of(percent, list("abc"), MEAN, (0.0, 100.0)).method == WILSON


@pytest.mark.parametrize("name", ["bleu", "chrf", "rougeL"])
def test_with_many_clusters_it_is_as_wide_as_four_standard_errors(name: str) -> None:
    draw = np.random.default_rng(5)
    words = np.array(
        [
            "a",
            "flat",
            "polyp",
            "in",
            "the",
            "upper",
            "left",
            "of",
            "an",
            "image",
            "near",
            "two",
            "clips",
        ]
    )
    references = [" ".join(draw.choice(words, 8)) for _ in range(900)]
    texts = [
        " ".join(word if draw.random() < 0.8 else draw.choice(words) for word in reference.split())
        for reference in references
    ]
    clusters = [f"{number // 3:03d}" for number in range(900)]
    metric = get_metric(name)
    table = lexical_statistics(list(zip(texts, references, strict=True)), [name])[name]
    low, high = ends(interval_of(table, clusters, metric.score, bounds_of(name)))
    total = table.sum(axis=0)
    without = metric.score(total - np.add.reduceat(table, range(0, 900, 3)))
    error = math.sqrt(299 / 300 * ((without - metric.score(total)) ** 2).sum())
    assert high - low == pytest.approx(2 * 1.968 * error, rel=0.05)
    if name == "rougeL":
        assert clustered_standard_error(table, clusters) == pytest.approx(error, rel=0.01)


def test_a_distance_may_be_0_although_the_estimate_is_positive() -> None:
    """By Student's t on the square: 0.1² ± t · jackknife reaches below 0."""
    draw = np.random.default_rng(2)
    signs = draw.choice([-1.0, 1.0], 60) + 0.1

    def distance(sums: Array) -> Array:
        far: Array = np.abs(sums[..., 0]) / sums[..., 2]
        return far

    items = ClusteredItems.of(np.column_stack([signs, signs, np.ones(60)]), np.arange(60))
    assert ends(score_interval(distance, items, (0.0, 2.0)))[0] > 0
    assert ends(score_interval(distance, items, (0.0, 2.0), is_distance=True))[0] == 0


@pytest.mark.parametrize("value", [1.0, 1 - 1e-15])
def test_rounding_is_no_variance(value: float) -> None:
    """As chrF may be 99.99999999999999 of equal texts."""
    rows = np.column_stack([np.full(12, value), np.ones(12)])
    low, high = ends(interval_of(rows, list("aabbccddeeff"), MEAN))
    perfect = ends(interval_of(np.ones((12, 2)), list("aabbccddeeff"), MEAN))
    assert (low, high) == pytest.approx(perfect, abs=1e-9)


def test_the_preference_of_a_letter_may_be_negative() -> None:
    pairs = np.array([[-1.0, 4.0], [0.0, 4.0], [-1.0, 4.0], [1.0, 3.0]])
    low, high = ends(interval_of(pairs, list("abcd"), MEAN, (-1.0, 1.0)))
    assert -1 < low < -1 / 15 < high < 1


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_clusters_have_no_interval(count: int) -> None:
    found = interval_of(*answers([2] * count, [3] * count), MEAN)
    plural = "" if count == 1 else "s"
    assert found == Interval(reason=f"found {count} cluster{plural}, an interval needs at least 2")


def test_items_without_observations_do_not_count() -> None:
    statistics, clusters = answers([2, 0, 1], [3, 2, 2])
    more = np.vstack([statistics, np.zeros((4, 2))])
    assert interval_of(more, [*clusters, "x", "y", "image0000", "z"], MEAN) == interval_of(
        statistics, clusters, MEAN
    )


def test_a_score_that_needs_every_cluster_has_no_interval() -> None:
    def of_both(sums: Array) -> Array:
        halves: Array = np.where((sums > 0).all(axis=-1), 0.5, np.nan)
        return halves

    found = interval_of(np.eye(3), list("abc"), of_both)
    assert found == Interval(reason="the score is undefined without 3 of 3 clusters")


STUDIES = st.lists(
    st.integers(1, 12).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))),
    min_size=2,
    max_size=30,
)


@given(STUDIES)
@settings(deadline=None)
def test_it_holds_the_score_has_a_width_and_keeps_within_bounds(
    study: list[tuple[int, int]],
) -> None:
    right, sizes = map(list, zip(*study, strict=True))
    low, high = ends(interval_of(*answers(right, sizes), MEAN))
    value = sum(right) / sum(sizes)
    assert 0 <= low <= value <= high <= 1
    assert high - low > 0.001


@given(STUDIES)
@settings(deadline=None)
def test_right_and_wrong_may_change_places(study: list[tuple[int, int]]) -> None:
    right, sizes = map(list, zip(*study, strict=True))
    low, high = ends(interval_of(*answers(right, sizes), MEAN))
    wrong = [size - count for count, size in study]
    assert ends(interval_of(*answers(wrong, sizes), MEAN)) == pytest.approx(
        (1 - high, 1 - low), abs=1e-9
    )


@given(STUDIES, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_neither_the_order_of_items_nor_the_names_of_clusters_matter(
    study: list[tuple[int, int]], draw
) -> None:  # type: ignore[no-untyped-def]
    right, sizes = map(list, zip(*study, strict=True))
    statistics, clusters = answers(right, sizes)
    order = [*range(len(clusters))]
    draw.shuffle(order)
    names = [*dict.fromkeys(clusters)]
    renamed = dict(zip(names, draw.sample(names, len(names)), strict=True))
    moved = interval_of(statistics[order], [renamed[clusters[row]] for row in order], MEAN)
    assert ends(moved) == pytest.approx(ends(interval_of(statistics, clusters, MEAN)), abs=1e-9)


@given(STUDIES)
@settings(deadline=None)
def test_twice_as_many_clusters_give_a_narrower_interval(study: list[tuple[int, int]]) -> None:
    right, sizes = map(list, zip(*study, strict=True))
    low, high = ends(interval_of(*answers(right, sizes), MEAN))
    below, above = ends(interval_of(*answers(right * 2, sizes * 2), MEAN))
    assert above - below < high - low

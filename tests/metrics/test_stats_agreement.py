"""Agreement coefficients against sklearn, scipy and worked examples, and what no rearrangement may change."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from medtasks.errors import UsageError
from medtasks.stats.agreement import (
    Agreement,
    Counts,
    Ratings,
    agreement_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    spearman,
)

LEVELS = ["nominal", "ordinal"]
# Krippendorff 2011, section C: 4 raters, 12 units, 7 ratings missing
PUBLISHED: list[list[float | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def cohen(ratings: Ratings, counts: Counts | None = None, quadratic: bool = False) -> Agreement:
    return cohen_kappa(*ratings, quadratic=quadratic, counts=counts)


def correlation(ratings: Ratings, counts: Counts | None = None) -> Agreement:
    return spearman(*ratings, counts=counts)


NOMINAL: dict[str, Any] = {
    "cohen": cohen,
    "fleiss": fleiss_kappa,
    "alpha nominal": partial(krippendorff_alpha, level="nominal"),
}
STATISTICS: dict[str, Any] = NOMINAL | {
    "cohen quadratic": partial(cohen, quadratic=True),
    "alpha ordinal": partial(krippendorff_alpha, level="ordinal"),
    "spearman": correlation,
}
pairs = st.integers(2, 12).flatmap(
    lambda items: st.tuples(*[st.lists(st.integers(1, 5), min_size=items, max_size=items)] * 2)
)
every_statistic = pytest.mark.parametrize("name", STATISTICS)


def simulated(clusters: int, each: int, seed: int) -> tuple[list[list[int]], list[str]]:
    """Two raters on a scale of 1 to 5 who differ from a shared score by at most one step."""
    draw = np.random.default_rng(seed)
    score = draw.integers(1, 6, size=clusters * each)
    ratings = [np.clip(score + draw.integers(-1, 2, size=len(score)), 1, 5).tolist() for _ in range(2)]
    return ratings, [f"image{item // each:02d}" for item in range(len(score))]


@pytest.mark.parametrize("quadratic", [False, True])
@given(ratings=pairs)
@settings(deadline=None)
def test_cohen_is_that_of_sklearn(quadratic: bool, ratings: tuple[list[int], list[int]]) -> None:
    found = cohen_kappa(*ratings, quadratic=quadratic)
    if len({*ratings[0], *ratings[1]}) == 1:
        assert (found.value, found.items) == (None, len(ratings[0]))
        assert "one category" in str(found.reason)
        return
    expected = cohen_kappa_score(*ratings, weights="quadratic" if quadratic else None, labels=[1, 2, 3, 4, 5])
    assert found == Agreement(pytest.approx(expected, abs=1e-12), None, None, len(ratings[0]))


def test_an_unused_level_is_still_a_step_of_the_scale() -> None:
    first, second = [1, 2, 5, 5], [1, 5, 5, 2]
    expected = cohen_kappa_score(first, second, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert cohen_kappa(first, second, quadratic=True).value == pytest.approx(expected)
    assert cohen_kappa_score(first, second, weights="quadratic") != pytest.approx(expected)


def test_fleiss_by_hand() -> None:
    # 3 raters, 4 items; per item A B C: 3 0 0 | 2 1 0 | 0 3 0 | 0 1 2
    # agreeing pairs of 3: 3, 1, 3, 1, so P = (1 + 1/3 + 1 + 1/3) / 4 = 2/3
    # shares of 12 ratings: 5/12, 5/12, 2/12, so P_e = (25 + 25 + 4) / 144 = 3/8
    # kappa = (2/3 - 3/8) / (1 - 3/8) = (7/24) / (15/24) = 7/15
    found = fleiss_kappa([[1, 1, 2, 3], [1, 1, 2, 3], [1, 2, 2, 2]])
    assert found == Agreement(pytest.approx(7 / 15, abs=1e-15), None, None, 4)


def test_alpha_of_the_published_example() -> None:
    found = [krippendorff_alpha(PUBLISHED, level) for level in LEVELS]  # type: ignore[arg-type]
    assert [round(each.value, 3) for each in found if each.value] == [0.743, 0.815]
    assert {each.items for each in found} == {11}  # the last unit has one rating


@given(ratings=pairs)
@settings(deadline=None)
def test_alpha_is_fleiss_with_chance_drawn_without_replacement(ratings: tuple[list[int], list[int]]) -> None:
    fleiss, alpha = fleiss_kappa(ratings).value, krippendorff_alpha(ratings, "nominal").value
    total = 2 * len(ratings[0])
    expected = None if fleiss is None else pytest.approx(1 - (1 - fleiss) * (total - 1) / total)
    assert alpha == expected


@given(ratings=pairs)
@settings(deadline=None)
def test_spearman_is_that_of_scipy(ratings: tuple[list[int], list[int]]) -> None:
    found = spearman(*ratings)
    if min(len(set(row)) for row in ratings) == 1:
        assert (found.value, found.low, found.high) == (None, None, None)
        assert "same rating" in str(found.reason)
    else:
        assert found.value == pytest.approx(float(spearmanr(*ratings).statistic), abs=1e-12)


@every_statistic
@given(row=st.lists(st.integers(1, 5), min_size=2, max_size=12).filter(lambda row: len(set(row)) > 1))
@settings(deadline=None)
def test_perfect_agreement_is_exactly_one(name: str, row: list[int]) -> None:
    assert STATISTICS[name]([row, row]).value == 1.0


@pytest.mark.parametrize("name", NOMINAL)
@given(ratings=pairs, names=st.permutations([1, 2, 30, 40, 5]))
@settings(deadline=None)
def test_nominal_scores_may_be_renamed(name: str, ratings: tuple[list[int], list[int]], names: list[int]) -> None:
    renamed = [[names[score - 1] for score in row] for row in ratings]
    assert NOMINAL[name](renamed) == NOMINAL[name](ratings)


@every_statistic
@given(ratings=pairs, data=st.data())
@settings(deadline=None)
def test_raters_and_items_may_come_in_any_order(
    name: str, ratings: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(ratings[0]))))
    expected = STATISTICS[name](ratings)
    assert STATISTICS[name]([[row[item] for item in order] for row in ratings]) == expected
    assert STATISTICS[name](ratings[::-1]) == expected


@pytest.mark.parametrize("level", LEVELS)
@given(raters=st.permutations(range(4)), items=st.permutations(range(12)))
@settings(max_examples=20, deadline=None)
def test_order_with_missing_ratings(level: Any, raters: list[int], items: list[int]) -> None:
    moved = [[PUBLISHED[rater][item] for item in items] for rater in raters]
    assert krippendorff_alpha(moved, level) == krippendorff_alpha(PUBLISHED, level)


@every_statistic
@given(ratings=pairs, data=st.data())
@settings(deadline=None)
def test_counts_are_repeated_items(name: str, ratings: tuple[list[int], list[int]], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(ratings[0]), max_size=len(ratings[0])))
    repeated = [np.repeat(row, counts).tolist() for row in ratings]
    found, expected = STATISTICS[name](ratings, counts=counts), STATISTICS[name](repeated)
    assert (found.items, found.reason) == (expected.items, expected.reason)
    assert found.value == (None if expected.value is None else pytest.approx(expected.value, abs=1e-12))


@given(ratings=pairs)
@settings(deadline=None)
def test_two_categories_are_weighted_as_unordered_ones(ratings: tuple[list[int], list[int]]) -> None:
    halves = [[label % 2 for label in row] for row in ratings]
    assert cohen(halves, quadratic=True) == cohen(halves)
    alphas = [krippendorff_alpha(halves, level).value for level in LEVELS]  # type: ignore[arg-type]
    assert alphas == [alphas[0] and pytest.approx(alphas[0], abs=1e-12)] * 2


def test_only_items_both_rated_enter_and_are_counted() -> None:
    first, second = [1, 2, None, 3, 1], [1, 3, 2, 3, None]
    assert cohen_kappa(first, second) == cohen_kappa([1, 2, 3], [1, 3, 3])
    assert spearman(first, second) == spearman([1, 2, 3], [1, 3, 3])
    assert cohen_kappa(first, second).items == 3


@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "fleiss"])
def test_no_overlap_is_undefined(name: str) -> None:
    found = STATISTICS[name]([[1, None], [None, 2]])
    assert (found.value, found.items) == (None, 0)
    assert "rated by" in str(found.reason)


@every_statistic
def test_nothing_and_one_category_are_undefined(name: str) -> None:
    examples: list[list[list[int]]] = [[[], []], [[2, 2, 2], [2, 2, 2]]]
    for ratings in examples:
        found = STATISTICS[name](ratings)
        assert (found.value, found.low, found.high, found.items) == (None, None, None, len(ratings[0]))
        assert found.reason
        assert agreement_interval(ratings, STATISTICS[name], [str(i) for i in range(len(ratings[0]))]) == found


def test_interval_equals_resampling_the_rows() -> None:
    ratings, clusters = simulated(clusters=12, each=4, seed=0)
    generator, scores = np.random.Generator(np.random.PCG64(7)), []
    for drawn in generator.multinomial(12, [1 / 12] * 12, size=40):
        rows = np.arange(48).repeat(drawn.repeat(4))
        scores.append(cohen_kappa_score(*(np.array(row)[rows] for row in ratings), weights="quadratic"))
    found = agreement_interval(ratings, STATISTICS["cohen quadratic"], clusters, resamples=40, seed=7)
    assert [found.low, found.high] == pytest.approx(np.quantile(scores, [0.025, 0.975]), abs=1e-12)


@every_statistic
@given(seed=st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_interval_contains_the_value_and_is_seeded(name: str, seed: int) -> None:
    ratings, clusters = simulated(clusters=30, each=3, seed=seed)
    found = agreement_interval(ratings, STATISTICS[name], clusters, resamples=100, seed=seed)
    assert found.value == STATISTICS[name](ratings).value
    assert found.low < found.value < found.high  # type: ignore[operator]
    order = np.random.default_rng(seed).permutation(90)
    moved = [[row[item] for item in order] for row in ratings]
    again = agreement_interval(moved, STATISTICS[name], [clusters[item] for item in order], resamples=100, seed=seed)
    assert repr(again) == repr(found)
    other = agreement_interval(ratings, STATISTICS[name], clusters, resamples=100, seed=seed + 1)
    assert other != found


def test_whole_clusters_are_drawn() -> None:
    ratings, clusters = simulated(clusters=10, each=1, seed=3)
    repeated = [[label for label in row for _ in range(9)] for row in ratings]
    together = agreement_interval(repeated, cohen, [name for name in clusters for _ in range(9)])
    apart = agreement_interval(repeated, cohen, [str(item) for item in range(90)])
    assert together.high - together.low > 2 * (apart.high - apart.low)  # type: ignore[operator]


def test_interval_takes_missing_ratings_and_three_raters() -> None:
    found = agreement_interval(PUBLISHED, STATISTICS["alpha ordinal"], list("abcdefghijkl"), resamples=200)
    assert found.low < found.value < found.high  # type: ignore[operator]
    assert (round(found.value or 0, 3), found.items) == (0.815, 11)


def test_too_few_clusters_and_undefined_resamples() -> None:
    found = agreement_interval([[1, 2], [1, 2]], fleiss_kappa, ["only", "only"])
    assert found == Agreement(1.0, None, None, 2, "found 1 cluster, an interval needs at least 2")
    found = agreement_interval([[1, 2], [1, 2]], fleiss_kappa, ["a", "b"])  # half the draws have one category
    assert (found.value, found.low, found.high) == (1.0, None, None)
    assert "undefined in" in str(found.reason)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cohen_kappa([1], [1, 2]), r"raters have \[1, 2\] items"),
        (lambda: fleiss_kappa([[1]]), "found 1 rater, "),
        (lambda: fleiss_kappa([[1, 2], [1, None]]), "rater 2 has no rating for item 2"),
        (lambda: agreement_interval([[1], [1]], cohen, []), "0 cluster names for 1 items"),
        (lambda: agreement_interval([[1, 2], [1, 2]], cohen, ["a", "b"], resamples=0), "resamples is 0"),
        (lambda: agreement_interval([[1], [1]], cohen, ["a"], confidence=95), "confidence is 95"),
        (lambda: agreement_interval([[1, 2], [1, 2]], cohen, ["a", "b"], seed=-1), "seed is -1"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()

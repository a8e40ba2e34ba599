"""Agreement coefficients against sklearn, scipy and worked examples, and what no rearrangement may
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from medtasks.stats.agreement import (
    ONE_CATEGORY,
    Coefficient,
    Ratings,
    Statistic,
    agreement_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    raw_agreement,
    spearman,
)

# Krippendorff 2011, section C: 4 raters, 12 units, 7 ratings missing; the last unit, with one
# rating, is left out
PUBLISHED: list[list[float | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1],
]
NOMINAL: dict[str, Statistic] = {
    "raw": raw_agreement,
    "cohen": cohen_kappa,
    "fleiss": fleiss_kappa,
    "alpha nominal": partial(krippendorff_alpha, level="nominal"),
}
STATISTICS: dict[str, Statistic] = NOMINAL | {
    "cohen quadratic": partial(cohen_kappa, quadratic=True),
    "alpha ordinal": partial(krippendorff_alpha, level="ordinal"),
    "spearman": spearman,
}
pairs = st.integers(2, 12).flatmap(
    lambda items: st.tuples(*[st.lists(st.integers(1, 5), min_size=items, max_size=items)] * 2)
)
Pair = tuple[list[int], list[int]]


def value(name: str, rows: Sequence[Sequence[float | None]]) -> float | str:
    return STATISTICS[name](Ratings.of(rows))


def simulated(clusters: int, each: int, seed: int) -> tuple[list[list[int]], list[str]]:
    """Two raters on a scale of 1 to 5 who differ from a shared score by at most one step."""
    draw = np.random.default_rng(seed)
    score = draw.integers(1, 6, size=clusters * each)
    ratings = [
        np.clip(score + draw.integers(-1, 2, size=len(score)), 1, 5).tolist() for _ in range(2)
    ]
    return ratings, [f"image{item // each:02d}" for item in range(len(score))]


@given(ratings=pairs)
def test_cohen_is_that_of_sklearn_and_spearman_that_of_scipy(ratings: Pair) -> None:
    for name, weights in (("cohen", None), ("cohen quadratic", "quadratic")):
        if len({*ratings[0], *ratings[1]}) == 1:
            assert value(name, ratings) == ONE_CATEGORY
        else:
            expected = cohen_kappa_score(*ratings, weights=weights, labels=[1, 2, 3, 4, 5])
            assert value(name, ratings) == pytest.approx(expected, abs=1e-12)
    found = value("spearman", ratings)
    if min(len(set(row)) for row in ratings) == 1:
        assert "same rating" in str(found)
    else:
        assert found == pytest.approx(float(spearmanr(*ratings).statistic), abs=1e-12)


def test_fleiss_by_hand() -> None:
    # 3 raters, 4 items; per item A B C: 3 0 0 | 2 1 0 | 0 3 0 | 0 1 2
    # agreeing pairs of 3: 3, 1, 3, 1, so P = (1 + 1/3 + 1 + 1/3) / 4 = 2/3
    # shares of 12 ratings: 5/12, 5/12, 2/12, so P_e = (25 + 25 + 4) / 144 = 3/8
    # kappa = (2/3 - 3/8) / (1 - 3/8) = (7/24) / (15/24) = 7/15
    assert value("fleiss", [[1, 1, 2, 3], [1, 1, 2, 3], [1, 2, 2, 2]]) == pytest.approx(
        7 / 15, abs=1e-15
    )


def test_alpha_of_the_published_example() -> None:
    assert value("alpha nominal", PUBLISHED) == pytest.approx(0.743, abs=5e-4)
    assert value("alpha ordinal", PUBLISHED) == pytest.approx(0.815, abs=5e-4)


@given(ratings=pairs)
def test_alpha_is_fleiss_with_chance_drawn_without_replacement(ratings: Pair) -> None:
    fleiss, alpha = value("fleiss", ratings), value("alpha nominal", ratings)
    total = 2 * len(ratings[0])
    assert alpha == (
        fleiss if isinstance(fleiss, str) else pytest.approx(1 - (1 - fleiss) * (total - 1) / total)
    )


@given(
    row=st.lists(st.integers(1, 5), min_size=2, max_size=12).filter(lambda row: len(set(row)) > 1)
)
@settings(max_examples=30)
def test_perfect_agreement_is_exactly_one(row: list[int]) -> None:
    assert {value(name, [row, row]) for name in STATISTICS} == {1.0}


@given(ratings=pairs, names=st.permutations([1, 2, 30, 40, 5]), data=st.data())
def test_order_counting_and_nominal_names_change_nothing(
    ratings: Pair, names: list[int], data: st.DataObject
) -> None:
    """Raters and items may come in any order, equal items may be counted together, nominal scores
    may be renamed.
    """
    order = data.draw(st.permutations(range(len(ratings[0]))))
    counts = data.draw(
        st.lists(st.integers(0, 3), min_size=len(order), max_size=len(order)).filter(any)
    )
    repeated = [np.repeat(row, counts).tolist() for row in ratings]
    for name, statistic in STATISTICS.items():
        expected = value(name, ratings)
        assert value(name, [[row[item] for item in order] for row in ratings]) == expected
        assert value(name, ratings[::-1]) == expected
        if name in NOMINAL:
            assert value(name, [[names[score - 1] for score in row] for row in ratings]) == expected
        found, expected = (
            statistic(replace(Ratings.of(ratings), counts=np.array(counts))),
            value(name, repeated),
        )
        assert found == (
            expected if isinstance(expected, str) else pytest.approx(expected, abs=1e-12)
        )


@pytest.mark.parametrize("name", ["alpha nominal", "alpha ordinal"])
@given(raters=st.permutations(range(4)), items=st.permutations(range(11)))
@settings(max_examples=20)
def test_order_with_missing_ratings(name: str, raters: list[int], items: list[int]) -> None:
    assert value(name, [[PUBLISHED[rater][item] for item in items] for rater in raters]) == value(
        name, PUBLISHED
    )


@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "raw"])
def test_one_category_is_undefined(name: str) -> None:
    rows = [[2, 2, 2], [2, 2, 2]]
    assert isinstance(value(name, rows), str)
    found = agreement_interval(Ratings.of(rows), STATISTICS[name], list("abc"))
    assert found == Coefficient(units=3, reason=str(value(name, rows)))


def test_interval_equals_resampling_the_rows() -> None:
    ratings, clusters = simulated(clusters=12, each=4, seed=0)
    generator, scores = np.random.Generator(np.random.PCG64(7)), []
    for drawn in generator.multinomial(12, [1 / 12] * 12, size=40):
        rows = np.arange(48).repeat(drawn.repeat(4))
        scores.append(
            cohen_kappa_score(*(np.array(row)[rows] for row in ratings), weights="quadratic")
        )
    found = agreement_interval(
        Ratings.of(ratings), STATISTICS["cohen quadratic"], clusters, resamples=40, seed=7
    )
    assert [found.low, found.high] == pytest.approx(np.quantile(scores, [0.025, 0.975]), abs=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3)
def test_interval_contains_the_value_and_is_seeded(name: str, seed: int) -> None:
    ratings, clusters = simulated(clusters=30, each=3, seed=seed)
    statistic = STATISTICS[name]
    found = agreement_interval(Ratings.of(ratings), statistic, clusters, resamples=100, seed=seed)
    assert found.value == value(name, ratings)
    assert found.low < found.value < found.high  # type: ignore[operator]
    order = np.random.default_rng(seed).permutation(90)
    moved = Ratings.of([[row[item] for item in order] for row in ratings])
    again = agreement_interval(
        moved, statistic, [clusters[item] for item in order], resamples=100, seed=seed
    )
    assert repr(again) == repr(found)
    assert (
        agreement_interval(Ratings.of(ratings), statistic, clusters, resamples=100, seed=seed + 1)
        != found
    )


def test_too_few_clusters_and_undefined_resamples() -> None:
    found = agreement_interval(
        Ratings.of(PUBLISHED), STATISTICS["alpha ordinal"], list("abcdefghijk"), resamples=200
    )
    assert found.low < found.value < found.high  # type: ignore[operator]  # with missing ratings and four raters
    two = Ratings.of([[1, 2], [1, 2]])
    found = agreement_interval(two, fleiss_kappa, ["only", "only"])
    assert found == Coefficient(
        value=1.0, units=2, reason="found 1 cluster, an interval needs at least 2"
    )
    found = agreement_interval(two, fleiss_kappa, ["a", "b"])  # half the draws have one category
    assert (found.value, found.low, found.high) == (1.0, None, None)
    assert "undefined in" in str(found.reason)

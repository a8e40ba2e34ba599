"""McNemar's test against statsmodels, scipy and hand-worked tables; its clustered form against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from medtasks.errors import UsageError
from medtasks.stats import McNemar, mcnemar


def verdicts(first_only: int, second_only: int, both: int = 4, neither: int = 3) -> tuple[list[bool], list[bool]]:
    first = [True] * first_only + [False] * second_only + [True] * both + [False] * neither
    second = [False] * first_only + [True] * second_only + [True] * both + [False] * neither
    return first, second


def test_published_example() -> None:
    """Airway hyper-responsiveness before and after transplantation, 1 : 7 (Fagerland et al. 2013, Table 3)."""
    first, second = verdicts(1, 7)
    assert mcnemar(first, second) == McNemar(1, 7, pytest.approx(2 * 9 / 256))
    assert mcnemar(first, second, mid_p=True).p_value == pytest.approx(10 / 256)


SPLITS = [(0, 1), (5, 5), (3, 12), (40, 12), (700, 811), (0, 60)]


@pytest.mark.parametrize(("one", "two"), SPLITS)
def test_agrees_with_scipy(one: int, two: int) -> None:
    assert mcnemar(*verdicts(one, two)).p_value == pytest.approx(binomtest(one, one + two).pvalue, rel=1e-9)


@pytest.mark.parametrize(("one", "two"), SPLITS)
def test_agrees_with_statsmodels(one: int, two: int) -> None:
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    expected = tables.mcnemar([[4, one], [two, 3]], exact=True).pvalue
    assert mcnemar(*verdicts(one, two)).p_value == pytest.approx(expected, rel=1e-9)


def test_mid_p_of_an_even_split_is_one() -> None:
    assert mcnemar(*verdicts(6, 6), mid_p=True).p_value == pytest.approx(1.0)
    assert mcnemar([], []) == McNemar(0, 0, 1.0)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("abcdef")), max_size=25))
def test_clustered_form_counts_every_flip(rows: list[tuple[bool, bool, str]]) -> None:
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    clusters = [row[2] for row in rows]
    sums = [sum(a - b for a, b, c in rows if c == name) for name in sorted(set(clusters))]
    flipped = [sum(s * d for s, d in zip(signs, sums, strict=True)) for signs in product((1, -1), repeat=len(sums))]
    extreme, tied = (
        sum(abs(value) > abs(sum(sums)) for value in flipped),
        sum(abs(value) == abs(sum(sums)) for value in flipped),
    )
    found = mcnemar(first, second, clusters=clusters)
    assert found.p_value == pytest.approx((extreme + tied) / len(flipped))
    assert found.clusters == len(sums)
    middle = mcnemar(first, second, clusters=clusters, mid_p=True).p_value
    assert middle == pytest.approx((extreme + tied / 2) / len(flipped) if sum(sums) else 1.0)


def test_clusters_of_one_question_are_the_plain_test() -> None:
    first, second = verdicts(9, 21)
    plain, clustered = mcnemar(first, second), mcnemar(first, second, clusters=[str(i) for i in range(37)])
    assert clustered == McNemar(9, 21, plain.p_value, 37)


def test_order_does_not_matter() -> None:
    draw = np.random.default_rng(3)
    first, second, clusters = draw.random(200) < 0.6, draw.random(200) < 0.5, draw.integers(0, 30, 200).astype(str)
    order = draw.permutation(200)
    expected = mcnemar(first, second, clusters=list(clusters))
    assert mcnemar(first[order], second[order], clusters=list(clusters[order])) == expected
    swapped = mcnemar(second, first, clusters=list(clusters))
    assert swapped == McNemar(expected.second_only, expected.first_only, expected.p_value, 30)


def test_only_the_clustered_form_keeps_its_level_for_clustered_answers() -> None:
    """Two equal models, each better on some images: of 1,000 data sets 5 % may be called different."""
    draw = np.random.default_rng(11)
    clusters = [f"image{i // 10:02d}" for i in range(400)]
    plain, clustered = 0, 0
    for _ in range(1000):
        rates = draw.beta(0.6, 0.6, size=(2, 40)).repeat(10, axis=1)
        first, second = draw.random((2, 400)) < rates
        plain += mcnemar(first, second).p_value <= 0.05
        clustered += mcnemar(first, second, clusters=clusters).p_value <= 0.05
    assert 0.03 <= clustered / 1000 <= 0.06
    assert plain / 1000 > 0.2


def test_wrong_verdicts_are_refused() -> None:
    with pytest.raises(UsageError, match="expected the same questions"):
        mcnemar([True], [True, False])
    with pytest.raises(UsageError, match="first has verdicts other than"):
        mcnemar(np.array([0.5, 1.0]), [True, False])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="1 cluster names for 2"):
        mcnemar([True, True], [True, False], clusters=["a"])

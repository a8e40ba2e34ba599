"""The sign-flip test against enumeration, scipy, statsmodels and a table from the literature."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from medtasks.stats.sign_flips import sign_flip_p


def right_alone(first: int, second: int) -> np.ndarray:
    """Questions that only the first or only the second model has right, each a cluster, and ten
    that both have.
    """
    return np.array([1.0] * first + [-1.0] * second + [0.0] * 10)


def test_published_example() -> None:
    """Airway hyper-responsiveness before and after transplantation, 1 : 7 (Fagerland et al. 2013,
    Table 3).
    """
    assert sign_flip_p(right_alone(1, 7)) == 2 * 9 / 256


@pytest.mark.parametrize(
    ("one", "two"), [(0, 1), (5, 5), (3, 12), (40, 12), (700, 811), (0, 60), (5000, 5200)]
)
def test_questions_that_are_their_own_clusters_have_the_exact_mcnemar_test(
    one: int, two: int
) -> None:
    exactly = 2e-4 if one + two > 10_000 else 1e-9  # more cannot be counted
    assert sign_flip_p(right_alone(one, two)) == pytest.approx(
        stats.binomtest(one, one + two).pvalue, rel=exactly
    )


@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(st.integers(-4, 4), st.floats(-3, 3).map(lambda x: round(x, 3))), max_size=10
    )
)
def test_few_clusters_are_counted_one_by_one(differences: list[float]) -> None:
    flipped = [sum(sign * Fraction(d) for sign, d in zip(signs, differences, strict=True))
               for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    reached = sum(abs(one) >= abs(flipped[0]) - Fraction(1, 10**7) for one in flipped)
    assert sign_flip_p(np.array(differences)) == pytest.approx(reached / len(flipped))


@pytest.mark.parametrize(("clusters", "tailed", "seed"), [(40, 1.2, 1), (300, 0, 0)])
def test_many_clusters_agree_with_scipys_draws(clusters: int, tailed: float, seed: int) -> None:
    """Even where a few clusters outweigh the others."""
    draw = np.random.default_rng(seed)
    differences = draw.normal(1.9 / clusters**0.5, 1, clusters) * draw.lognormal(
        0, tailed, clusters
    )
    expected = stats.permutation_test(
        (differences,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=40_000,
        vectorized=True, batch=5000, rng=np.random.default_rng(0),
    ).pvalue  # fmt: skip
    assert 0.005 < expected < 0.5
    assert sign_flip_p(differences) == pytest.approx(expected, rel=0.08 if tailed else 0.04)


def counted(differences: list[int]) -> Fraction:
    """The p-value by counting, in whole numbers, how many choices of signs give each sum."""
    ways = {0: 1}
    for one in differences:
        longer: dict[int, int] = {}
        for total, number in ways.items():
            for value in (total + one, total - one):
                longer[value] = longer.get(value, 0) + number
        ways = longer
    reached = sum(number for total, number in ways.items() if abs(total) >= abs(sum(differences)))
    return Fraction(reached, 2 ** len(differences))


@pytest.mark.parametrize(
    ("clusters", "spread", "lean"),
    [(60, 15, 1), (150, 6, 1), (150, 6, 5), (300, 2, 2), (300, 30, 7)],
)
def test_right_answers_in_many_clusters_are_nearly_exact(
    clusters: int, spread: int, lean: float
) -> None:
    """The approximation of whole numbers, up to far tails."""
    draw = np.random.default_rng(spread)
    differences = (
        np.round(draw.normal(lean * spread / clusters**0.5, spread, clusters)).astype(int).tolist()
    )
    found, expected = sign_flip_p(np.array(differences) / 5311), float(counted(differences))
    assert found == pytest.approx(expected, rel=0.01)
    assert lean < 5 or expected < 1e-5


def test_neither_unit_nor_order_nor_who_is_first_matters() -> None:
    draw = np.random.default_rng(3)
    for differences in (
        draw.normal(0.3, 1, 20),
        draw.normal(0.3, 1, 200),
        draw.integers(-3, 4, 90).astype(float),
    ):
        expected = sign_flip_p(differences)
        assert sign_flip_p(-differences) == expected
        assert sign_flip_p(draw.permutation(differences)) == pytest.approx(expected, rel=1e-12)
        assert sign_flip_p(differences / 16_022) == pytest.approx(expected, rel=1e-6)
        assert sign_flip_p(np.append(differences, np.zeros(40))) == expected


def test_a_p_value_is_never_0_nor_below_what_the_signs_can_say() -> None:
    draw = np.random.default_rng(4)
    for clusters in (1, 2, 4, 20, 31, 200):
        assert sign_flip_p(draw.random(clusters) + 0.1) == pytest.approx(2.0 ** (1 - clusters))
    assert 0 < sign_flip_p(draw.random(20_000)) < 1e-300
    nearly = sign_flip_p(np.append(draw.random(40) + 0.1, -1e-4))
    assert 2.0**-40 <= nearly <= 2.0**-37


def test_nothing_to_flip_is_1() -> None:
    assert sign_flip_p(np.zeros(0)) == sign_flip_p(np.zeros(7)) == 1.0
    assert sign_flip_p(np.array([1.0, -1.0] * 100)) == 1.0
    assert sign_flip_p(
        np.random.default_rng(0).normal(0, 1, 50) @ (np.eye(50) - 1 / 50)
    ) == pytest.approx(1, abs=1e-6)

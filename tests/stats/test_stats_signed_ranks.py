"""Wilcoxon's signed-rank test: every sign assignment, also with ties and differences of 0."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import PermutationMethod, rankdata, wilcoxon

from medtasks.stats.sign_flips import signed_rank_p

DIMENSIONS = [
    2 / 27,
    -3 / 57,
    0.2,
    2 / 19,
    3 / 22,
    7 / 102,
    2 / 21,
    10 / 27,
    7 / 19,
    -1 / 15,
    9 / 19,
    7 / 22,
    0.245098,
    2 / 21,
]
"""Losses of two tuned models in seven tasks each: one size occurs twice."""


def counted_p(differences: list[float]) -> float:
    """The share of all sign assignments whose rank sum is at least as far from 0."""
    values = np.array([one for one in differences if one])
    ranks = rankdata(np.abs(values))
    signs = np.array(list(itertools.product((-1, 1), repeat=len(values))))
    sums = np.abs(signs @ ranks)
    return float(np.mean(sums >= abs(np.sign(values) @ ranks) - 1e-9))


def test_two_equal_differences_do_not_make_the_test_approximate() -> None:
    """SciPy's default is the normal distribution here (0.0019), three times the exact value (10 of
    16,384).
    """
    assert signed_rank_p(np.array(DIMENSIONS)) == 10 / 2**14
    assert wilcoxon(DIMENSIONS, method="approx").pvalue > 0.0018


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=11).filter(any))
def test_ties_and_zeros_are_counted_as_by_hand(differences: list[float]) -> None:
    assert signed_rank_p(np.array(differences)) == pytest.approx(counted_p(differences), abs=1e-12)


@given(st.lists(st.integers(1, 9), min_size=20, max_size=25), st.integers(0, 2**25))
def test_up_to_25_tied_differences_agree_with_an_exact_recursion(
    sizes: list[int], signs: int
) -> None:
    """The distribution of the positive rank sum, one difference after the other, in doubled
    ranks.
    """
    values = np.array([size if signs >> place & 1 else -size for place, size in enumerate(sizes)])
    ranks = (2 * rankdata(np.abs(values))).astype(int)
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1
    for rank in ranks.tolist():
        ways[rank:] += ways[: len(ways) - rank].copy()
    distance = np.abs(2 * np.arange(len(ways)) - ranks.sum())
    observed = abs(int(np.sign(values) @ ranks))
    expected = ways[distance >= observed].sum() / 2.0 ** len(values)
    assert signed_rank_p(values) == pytest.approx(expected, rel=1e-9)


def test_without_ties_it_is_scipys_exact_test() -> None:
    differences = np.array([0.3, -1.1, 2.4, 0.7, -0.2, 1.9, 3.3, 0.9])
    assert signed_rank_p(differences) == pytest.approx(wilcoxon(differences, method="exact").pvalue)


def test_with_ties_it_is_scipys_permutation_test() -> None:
    differences = np.array([1, 1, 2, -1, 3, 3, -2, 4, 1, 2], dtype=np.float64)
    every_sign = PermutationMethod(n_resamples=2**11)
    assert signed_rank_p(differences) == pytest.approx(
        wilcoxon(differences, method=every_sign).pvalue
    )


def test_differences_that_differ_in_rounding_only_are_tied() -> None:
    """0.3 - 0.2 and 0.1 are one size, and 0.1 + 0.2 - 0.3 is no difference."""
    rounded = np.array([0.1, 0.1, -0.2, 0.4, 0.5])
    computed = np.array([0.3 - 0.2, 0.1, 0.2 - 0.4, 0.4, 0.5, 0.1 + 0.2 - 0.3])
    assert computed[0] != 0.1
    assert computed[-1] != 0
    assert signed_rank_p(computed) == signed_rank_p(rounded) == counted_p(rounded.tolist())


def test_no_difference_at_all_has_a_p_value_of_1() -> None:
    assert signed_rank_p(np.zeros(5)) == 1.0

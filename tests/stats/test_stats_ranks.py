"""Rank intervals and compact letters."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.stats.holm import holm
from medtasks.stats.ranks import compact_letters, normalised_ranks, rank_intervals, with_tied_ranks
from medtasks.stats.sign_flips import sign_flip_p


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[9.0] * 100, [5.0] * 50 + [3.0] * 50, [4.0] * 100], [(1, 1), (2, 3), (2, 3)]),
        ([[2.0] * 99 + [0.0], [1.0] * 100], [(1, 1), (2, 2)]),
        ([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]], [(1, 2), (1, 2), (3, 3)]),
        ([[1.0, np.nan], [0.5, 0.7]], [None, (1, 1)]),
    ],
    ids=[
        "follow the resamples",
        "held in few resamples",
        "equal models share their places",
        "undefined",
    ],
)
def test_rank_intervals(scores: list[list[float]], expected: list[tuple[int, int] | None]) -> None:
    assert (
        rank_intervals(np.array(scores))
        == rank_intervals(-np.array(scores), higher_is_better=False)
        == expected
    )


def test_models_that_cannot_be_told_apart_share_their_ranks() -> None:
    """a leads c and d, b leads d: the true order may still be b, a, c, d or a, c, b, d."""
    different = [("a", "c"), ("a", "d"), ("b", "d")]
    bounds = [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert with_tied_ranks(bounds, list("abcd"), different) == [(1, 2), (1, 3), (2, 4), (3, 4)]
    assert with_tied_ranks(bounds, list("abcd"), []) == [(1, 4)] * 4
    every = list(combinations("abcd", 2))
    assert with_tied_ranks(bounds, list("abcd"), every) == bounds
    # intervals are never made shorter, and what has no rank keeps none
    assert with_tied_ranks([(1, 2), None, (1, 2)], list("axb"), [("a", "b")]) == [
        (1, 2),
        None,
        (1, 2),
    ]


def test_ranges_of_ranks_hold_together_for_equal_models() -> None:
    """In few studies of six equal models some model's range excludes a rank; 0.08 is 5 % and two
    standard errors.
    """
    draw = np.random.default_rng(1)
    names, lone_places = list("abcdef"), [(place, place) for place in range(1, 7)]
    excluded = 0
    for _ in range(200):
        right = {name: (draw.random(200) < 2 / 3).astype(float) for name in names}
        order = sorted(names, key=lambda name: -float(right[name].sum()))
        pairs = list(combinations(order, 2))
        adjusted = holm([sign_flip_p(right[ahead] - right[behind]) for ahead, behind in pairs])
        differ = [
            pair for pair, p in zip(pairs, adjusted, strict=True) if p is not None and p <= 0.05
        ]
        excluded += with_tied_ranks(lone_places, order, differ) != [(1, 6)] * 6
    assert excluded / 200 <= 0.08


def test_letters_of_neighbours() -> None:
    """Piepho's textbook shape: each model apart from all but its neighbours."""
    different = [("one", "three"), ("one", "four"), ("two", "four")]
    assert compact_letters(different, ["one", "two", "three", "four"]) == {
        "one": ("a",),
        "two": ("a", "b"),
        "three": ("b", "c"),
        "four": ("c",),
    }


def test_letters_when_all_or_none_differ() -> None:
    names = [f"m{i:02d}" for i in range(28)]
    assert set(compact_letters([], names).values()) == {("a",)}
    every = compact_letters(combinations(names, 2), names)
    assert [every[names[i]] for i in (0, 25, 26, 27)] == [("a",), ("z",), ("aa",), ("ab",)]
    assert compact_letters([], []) == {}


PAIRS = list(combinations("abcdefg", 2))


@given(st.lists(st.sampled_from(PAIRS), unique=True), st.permutations("abcdefg"), st.randoms())
def test_models_share_a_letter_if_and_only_if_they_do_not_differ(different, order, shuffle) -> None:  # type: ignore[no-untyped-def]
    found = compact_letters(different, order)
    assert list(found) == order
    for pair in PAIRS:
        assert bool({*found[pair[0]]} & {*found[pair[1]]}) is (pair not in different)
    assert all(found.values())
    for gone in {
        letter for letters in found.values() for letter in letters
    }:  # none could be left out
        left = {name: {*letters} - {gone} for name, letters in found.items()}
        lost = any(not left[a] & left[b] for a, b in PAIRS if (a, b) not in different)
        assert lost or not all(left.values())
    seen = [letter for name in order for letter in found[name]]
    assert sorted(set(seen), key=seen.index) == sorted(
        set(seen)
    )  # letters begin in the order of the models
    turned = [pair[::-1] for pair in different]
    shuffle.shuffle(turned)
    assert compact_letters(turned, order) == found


def test_a_hundred_models_with_any_pairs_take_moderately_many_letters() -> None:
    draw = np.random.default_rng(0)
    names = [f"m{i:02d}" for i in range(100)]
    different = [pair for pair in combinations(names, 2) if draw.random() < 0.1]
    letters = {letter for held in compact_letters(different, names).values() for letter in held}
    assert len(letters) < 1000


def test_normalised_ranks_as_the_kvasir_papers_heat_map_has_them() -> None:
    assert normalised_ranks([0.9, 0.5, 0.5, None, 0.1]) == [0.0, 0.5, 0.5, None, 1.0]
    assert normalised_ranks([0.9, 0.5, None, 0.5]) == [0.0, 0.75, None, 0.75]
    assert normalised_ranks([3.0, 1.0, 2.0], higher_is_better=False) == [1.0, 0.0, 0.5]
    assert normalised_ranks([0.4]) == [0.0]
    assert normalised_ranks([None]) == [None]

"""Which frames a window shows: worked examples and properties, without any video."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.data.media.windows import beyond_end, exact, frame_numbers, frames_shown, thin

decimals = st.integers(0, 60_000).map(lambda milliseconds: Fraction(milliseconds, 1000))
frame_times = st.lists(st.integers(1, 20_000), max_size=40, unique=True).map(
    lambda gaps: [Fraction(0), *(Fraction(time, 1000) for time in sorted(gaps))]
)


def test_exact_takes_the_decimal_that_was_written() -> None:
    assert exact(0.1) + exact(0.2) == exact(0.3)
    assert exact(1e-07) == Fraction(1, 10_000_000)


def sampled(times: list[Fraction], start: Fraction, end: Fraction) -> list[int]:
    """The definition, sample by sample."""
    samples = [start + 2 * number for number in range(int((end - start) / 2) + 1)]
    shown = {sum(time <= sample for time in times) - 1 for sample in [*samples, end]}
    return sorted(shown - {-1})


@given(times=frame_times, offset=decimals, start=decimals, length=decimals)
def test_frames_are_those_of_the_definition(
    times: list[Fraction], offset: Fraction, start: Fraction, length: Fraction
) -> None:
    later = [offset / 10 + time for time in times]
    assert frames_shown(later, start, start + length) == sampled(later, start, start + length)


def test_a_long_window_over_far_apart_frames_is_no_more_work() -> None:
    times = [Fraction(0), Fraction(10**17)]  # indices that are dates: frame_20240101120000123.png
    assert frames_shown(times, Fraction(0), Fraction(10**18)) == [0, 1]


def test_a_window_may_begin_up_to_a_step_after_the_end() -> None:
    times = [Fraction(number, 4) for number in range(9)]  # the last at 2 s

    assert not beyond_end(times, Fraction(4))
    assert beyond_end(times, Fraction("4.001"))
    assert beyond_end([], Fraction(0))


@given(total=st.integers(1, 500), most=st.integers(1, 60))
def test_thinning_keeps_first_and_last_and_spreads_evenly(total: int, most: int) -> None:
    kept = thin(total, most)

    assert thin(total, None) == list(range(total))
    assert len(kept) == min(total, most)
    assert kept == sorted(set(kept))
    assert kept[-1] == total - 1
    if len(kept) > 1:
        assert kept[0] == 0
        gaps = {after - before for before, after in pairwise(kept)}
        assert max(gaps) - min(gaps) <= 1


def test_image_sequences_are_numbered_by_their_names() -> None:
    assert frame_numbers(["f_10.jpg", "f_9.jpg", "f_0011.jpg"]) == (
        ["f_9.jpg", "f_10.jpg", "f_0011.jpg"],
        [9, 10, 11],
    )


@pytest.mark.parametrize(
    "names", [["a.jpg", "b2.jpg"], ["x1_1.png", "y2_1.png"], ["b10.jpg", "b9.jpg", "b.jpg"]]
)
def test_names_without_numbers_of_their_own_are_counted(names: list[str]) -> None:
    ordered, numbers = frame_numbers(names)

    assert sorted(ordered) == sorted(names)
    assert numbers == list(range(len(names)))

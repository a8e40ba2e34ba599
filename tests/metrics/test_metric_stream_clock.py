"""Streams on the clock, worked out by hand."""

from __future__ import annotations

import pytest

from medtasks.catalog.items import Turn
from medtasks.core.errors import DataError
from medtasks.metrics.stream_clock import (
    ClockedStream,
    RoundClock,
    answered_in_time,
    real_time_factors,
    responsiveness_with_computing,
)
from medtasks.metrics.streaming import Stream, timed_scores

TIMES = (4.0, 6.0, 8.0, 10.0)
"""When the rounds end, in seconds; the question is put at 2 s, the answer is there from 8 s on."""


def clocked(
    positive: str,
    seconds: tuple[float | None, ...],
    *,
    delays: tuple[float | None, ...] | None = None,
    tolerance: float = 1,
    due: bool = True,
    unit: float = 1,
) -> ClockedStream:
    """The stream whose responses are positive at the signs ``+``; one second is ``unit``."""
    turns = []
    for number, (time, sign) in enumerate(zip(TIMES, positive, strict=True), start=1):
        turn = Turn(
            item="s",
            number=number,
            rounds=len(TIMES),
            streaming=True,
            in_seconds=unit == 1,
            closed=True,
            time=time * unit,
            query_time=2 * unit,
            expected_time=None,
            tolerance=tolerance * unit,
            answerable=due and time >= 8,
            positive=sign == "+",
            content=1.0,
            invalid=False,
        )
        turns.append(turn)
    rounds = []
    for second, delay in zip(seconds, delays or seconds, strict=True):
        rounds.append(RoundClock(second, delay))
    return ClockedStream(Stream(tuple(turns)), tuple(rounds), unit)


def test_the_real_time_factor_is_computing_by_the_time_to_the_next_round() -> None:
    assert real_time_factors(clocked("..++", (0.5, 1, 3, 9))) == [0.25, 0.5, 1.5]
    assert answered_in_time(clocked("..++", (0.5, 2, 2.1, 9))) == [True, True, False]


@pytest.mark.parametrize(
    ("positive", "seconds", "in_stream", "with_computing"),
    [
        # there at 8.4 s, within 1 s of 8 s
        ("..++", (0.5, 1, 0.4, 3), 1, 1),
        # at 9.5 s: 1 - (1.5 - 1) / 1
        ("..++", (0.5, 1, 1.5, 3), 1, 0.5),
        # at 11 s
        ("..++", (0.5, 1, 3, 3), 1, 0),
        # a premature alert at 6 s is there at 7.2 s, as if the model had waited
        (".+++", (0.5, 1.2, 3, 3), 0, 1),
        ("....", (0.5, 1, 1, 1), 0, 0),
    ],
)
def test_computing_shifts_the_first_positive_response(
    positive: str, seconds: tuple[float, ...], in_stream: float, with_computing: float
) -> None:
    stream = clocked(positive, seconds)
    assert timed_scores(stream.stream)["responsiveness"] == in_stream
    assert responsiveness_with_computing(stream) == with_computing


def test_the_earliest_positive_response_counts_although_it_is_not_that_of_the_first_round() -> None:
    # that of the round at 8 s is there at 13 s, that of the round at 10 s at 10.2 s
    stream = clocked("..++", (0.5, 1, 5, 0.2), tolerance=2)
    assert responsiveness_with_computing(stream) == pytest.approx(1 - 0.2 / 2)


def test_silence_is_right_in_a_stream_in_which_nothing_is_due_however_long_it_takes() -> None:
    assert responsiveness_with_computing(clocked("....", (9, 9, 9, 9), due=False)) == 1
    assert responsiveness_with_computing(clocked("...+", (0, 0, 0, 0), due=False)) == 0


def test_no_seconds_change_nothing() -> None:
    for positive in ("..++", ".+++", "...+", "....", "+..."):
        stream = clocked(positive, (0, 0, 0, 0))
        assert (
            responsiveness_with_computing(stream) == timed_scores(stream.stream)["responsiveness"]
        )


def test_a_paced_stream_counts_from_when_a_round_was_due() -> None:
    # the round at 8 s was sent 1 s late, after the one at 4 s; that at 6 s was missed
    stream = clocked("..++", (4.5, None, 0.25, 0.5), delays=(4.5, None, 1.25, 0.5))
    assert real_time_factors(stream) == [2.25, None, 0.125]
    assert answered_in_time(stream) == [False, False, True]
    assert responsiveness_with_computing(stream) == 0.75


def test_frames_are_turned_into_seconds() -> None:
    stream = clocked("..++", (0.5, 1, 1.5, 3), unit=25)
    assert real_time_factors(stream) == [0.25, 0.5, 0.75]
    assert responsiveness_with_computing(stream) == 0.5


def test_a_stream_needs_the_clock_of_every_round() -> None:
    with pytest.raises(DataError, match="4 rounds and the seconds of 3"):
        ClockedStream(clocked("....", (0, 0, 0, 0)).stream, (RoundClock(0, 0),) * 3)

"""Streaming scores: examples worked by hand, and what must hold of every item."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from medtasks.catalog.items import Turn
from medtasks.catalog.task_model import Timing
from medtasks.core.errors import DataError
from medtasks.metrics import streaming
from medtasks.metrics.streaming import Stream

EVERY_2_S = (2.0, 4.0, 6.0, 8.0, 10.0)


def answer(
    time: float,
    answerable: bool,
    positive: bool,
    content: float | None,
    invalid: bool = False,
    **record: Any,
) -> Turn:
    """One turn; ``record`` are the times that the item's record gives."""
    times = {"query_time": 0.0, "expected_time": None, "tolerance": None, **record}
    said = {"answerable": answerable, "positive": positive, "content": content, "invalid": invalid}
    return Turn(
        "item", 1, 1, streaming=True, in_seconds=True, closed=True, time=time, **times, **said
    )


def given(item: Stream, **record: Any) -> Stream:
    """The item with other times of its record."""
    return replace(item, turns=tuple(replace(turn, **record) for turn in item.turns))


def timed(item: Stream, name: str) -> Any:
    return streaming.timed_scores(item)[name]


def content(item: Stream) -> float | None:
    low, high = streaming.content_limits(item.turns)
    return low if low == high else None


def stream(
    said: str,
    times: Sequence[float] = EVERY_2_S,
    *,
    evidence: float = 6,
    query_time: float = 0,
    expected_time: float | None = None,
    tolerance: float | None = 1,
) -> Stream:
    """One character a round: ``+`` positive, ``.`` silent, ``x`` invalid, ``?`` positive and not
    judged yet.

    Rounds are answerable from ``evidence`` on; content is 1 where the model spoke and should, or
    neither.
    """
    rounds = []
    for state, time in zip(said, times, strict=True):
        answerable, positive = time >= evidence, state in "+?"
        right = 1.0 if state != "x" and positive == answerable else 0.0
        score = None if state == "?" else right
        record = {"query_time": query_time, "expected_time": expected_time, "tolerance": tolerance}
        rounds.append(answer(time, answerable, positive, score, state == "x", **record))
    return Stream(tuple(rounds))


# Rounds end at 2, 4, 6, 8 and 10 s, t_q = 0, t* = 6, δ = 1, H = 10. R is given under both laws: a
# response one round away from t* is 2 s = 2δ off and scores 0; over the stream's length it loses a
# tenth.
@pytest.mark.parametrize(
    (
        "said",
        "right",
        "responsiveness",
        "over_length",
        "stability",
        "false_alarm",
        "missed",
        "delay",
    ),
    [
        # t̂ = 6 = t*: R = 1. Of the 3 rounds from 6 s on, 3 are positive. All 5 are right.
        pytest.param("..+++", 5 / 5, 1.0, 1.0, 3 / 3, False, False, 0, id="exact"),
        # t̂ = 8: R = 1 - (|8 - 6| - 1) / 1 = 0, or 1 - 1 / 10 = 0.9. Silent at 6 s: S = 2/3, C =
        # 4/5.
        pytest.param("...++", 4 / 5, 0.0, 0.9, 2 / 3, False, False, 2, id="late"),
        # t̂ = 4 < 6 - 1: R = 0, or 1 - (|4 - 6| - 1) / 10 = 0.9. S = 3/3; wrong at 4 s: C = 4/5.
        pytest.param(".++++", 4 / 5, 0.0, 0.9, 3 / 3, True, False, -2, id="early"),
        # t̂ = 2: R = 0, or 1 - (|2 - 6| - 1) / 10 = 0.7. S = 3/3, C = 3/5.
        pytest.param("+++++", 3 / 5, 0.0, 0.7, 3 / 3, True, False, -4, id="at once"),
        # No t̂: R = 0. S = 0/3. Right only before the evidence: C = 2/5.
        pytest.param(".....", 2 / 5, 0.0, 0.0, 0 / 3, False, True, None, id="never"),
        # R is that of the first positive, t̂ = 2: 0, or 1 - (4 - 1) / 10. S = 0/3. Right at 4 s
        # alone: C = 1/5.
        pytest.param(
            "+....",
            1 / 5,
            0.0,
            0.7,
            0 / 3,
            True,
            False,
            -4,
            id="alarm before evidence, then silence",
        ),
        # t̂ = 6: R = 1. Positive at 6 and 10 of 6, 8, 10: S = 2/3. Wrong at 8 s: C = 4/5.
        pytest.param("..+.+", 4 / 5, 1.0, 1.0, 2 / 3, False, False, 0, id="flip-flop"),
        # An invalid response before the evidence is no alarm, but not right either: C = 3/5.
        pytest.param("xx+++", 3 / 5, 1.0, 1.0, 3 / 3, False, False, 0, id="invalid, then exact"),
        # An invalid response is not positive, so t̂ = 8: R = 0, or 0.9. S = 2/3, C = 4/5.
        pytest.param("..x++", 4 / 5, 0.0, 0.9, 2 / 3, False, False, 2, id="invalid when due"),
        pytest.param("xxxxx", 0 / 5, 0.0, 0.0, 0 / 3, False, True, None, id="all invalid"),
    ],
)
def test_worked_examples(
    said: str,
    right: float,
    responsiveness: float,
    over_length: float,
    stability: float,
    false_alarm: bool,
    missed: bool,
    delay: float | None,
) -> None:
    item = stream(said)
    assert streaming.content_limits(item.turns) == (right, right)
    assert timed(item, "responsiveness") == pytest.approx(responsiveness, abs=1e-12)
    assert timed(item, "responsiveness_stream_length") == pytest.approx(over_length, abs=1e-12)
    assert timed(item, "stability") == stability
    assert timed(item, "false_alarm_rate") == false_alarm
    assert timed(item, "miss_rate") == missed
    assert timed(item, "signed_delay") == delay
    assert timed(item, "invalid_rate") == said.count("x") / 5


@pytest.mark.parametrize(
    ("timing", "responsiveness"),
    [
        # "...++" with t* = 6: t̂ = 8 is 2 s late. The record has no tolerance, so δ is half of 2 s,
        # 1 s.
        (Timing(), 0.0),  # 1 - (2 - 1) / 1
        (Timing(scale=4), 0.75),  # 1 - (2 - 1) / 4
        (Timing(default_tolerance=1.5), 1 - 0.5 / 1.5),
        (Timing(default_tolerance=2), 1.0),
        (Timing(default_tolerance=0), 0.0),  # nothing but t* itself, and no room beyond
        (Timing(law="stream-length"), 0.9),  # 1 - (2 - 1) / 10
        (Timing(law="stream-length", scale=0.5), 0.8),  # 1 - (2 - 1) / 5
    ],
)
def test_law_scale_and_default_tolerance_are_settings(
    timing: Timing, responsiveness: float
) -> None:
    item = replace(stream("...++", tolerance=None), timing=timing)
    assert timed(item, "responsiveness") == pytest.approx(responsiveness, abs=1e-12)
    # the second law depends on the tolerance, not on what the task declares as law and scale
    other = replace(item, timing=Timing(default_tolerance=timing.default_tolerance))
    second, same = (timed(one, "responsiveness_stream_length") for one in (item, other))
    assert second == same


def test_the_records_t_star_goes_before_the_answerable_rounds() -> None:
    item = stream("..+.+", expected_time=7, tolerance=0.5)  # rounds are answerable from 6 s on
    assert streaming.expected_time(item) == 7
    assert timed(item, "responsiveness") == 0  # |6 - 7| = 2δ
    assert timed(item, "stability") == 1 / 2  # of 8 and 10 s, positive at 10 s
    assert timed(item, "false_alarm_rate")  # 6 < 7 - 0.5
    assert timed(item, "signed_delay") == -1


def test_a_t_star_after_the_last_round_leaves_stability_undefined() -> None:
    item = stream("....+", expected_time=12)
    assert timed(item, "stability") is None
    assert timed(item, "responsiveness") == 0  # |10 - 12| = 2δ
    assert not timed(item, "miss_rate")
    assert timed(stream(".....", expected_time=12), "responsiveness") == 0
    assert timed(stream(".....", expected_time=12), "miss_rate")


@pytest.mark.parametrize(
    ("said", "scored", "false_alarm"),
    [(".....", 1, False), ("...+.", 0, True), ("xxxxx", 1, False)],
)
def test_where_nothing_ever_becomes_answerable_silence_is_timely_and_stable(
    said: str, scored: float, false_alarm: bool
) -> None:
    item = stream(said, evidence=math.inf)
    assert streaming.expected_time(item) is None
    assert timed(item, "responsiveness") == scored
    assert timed(item, "stability") == scored
    assert timed(item, "false_alarm_rate") == false_alarm
    assert timed(item, "miss_rate") is None
    assert timed(item, "signed_delay") is None


def test_one_round_only() -> None:
    for said, score in [("+", 1), (".", 0), ("x", 0)]:
        item = stream(said, [10], tolerance=None)
        assert timed(item, "responsiveness") == score
        assert timed(item, "stability") == score
        assert content(item) == score
        assert timed(item, "miss_rate") == (score == 0)
    # No gap between rounds: δ = (10 - 0) / 2 = 5. R = 1 - (|10 - 2| - 5) / 5 = 0.4.
    late = stream("+", [10], expected_time=2, tolerance=None)
    assert streaming.tolerance(late) == 5
    assert timed(late, "responsiveness") == pytest.approx(0.4)
    # of length 0: no room between 1 and 0
    assert timed(stream("+", [3], query_time=3, evidence=3, tolerance=None), "responsiveness") == 1
    later = stream("+", [3], query_time=3, expected_time=4, tolerance=None)
    assert (streaming.tolerance(later), timed(later, "responsiveness")) == (0, 0)
    # an image sequence counts frames, and its question may be timed in seconds
    assert streaming.tolerance(stream("+", [3], query_time=20, tolerance=None)) == 0


def test_default_tolerance_is_half_the_smallest_gap_and_the_records_own_goes_before_any_default() -> (
    None
):
    times = [1, 4, 5.5, 9]  # gaps 3, 1.5 and 3.5; the second before the first round is none
    assert streaming.tolerance(stream("....", times, tolerance=None)) == 0.75
    for own in (0, 2):
        item = stream("....", times, tolerance=own)
        assert streaming.tolerance(item) == own
        for law in ("tolerance", "stream-length"):
            assert (
                streaming.tolerance(replace(item, timing=Timing(law=law, default_tolerance=5)))
                == own
            )


def test_float_error_moves_no_time() -> None:
    time = 0.1 + 0.2  # a little more than 0.3
    late = stream(".+", [0.1, time], evidence=0.3, expected_time=0.3, tolerance=0)
    early = stream(".+", [0.1, 0.3], evidence=0.3, expected_time=time, tolerance=0)
    for item in (late, early):
        assert timed(item, "responsiveness") == 1
        assert timed(item, "stability") == 1
        assert not timed(item, "false_alarm_rate")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stream((answer(math.nan, True, True, 1),)), "time is nan"),
        (
            lambda: Stream((answer(2, True, True, 1.5),)),
            "round at 2 has content 1.5, expected 0 to 1",
        ),
        (lambda: Stream((answer(2, True, True, 0, invalid=True),)), "invalid with positive True"),
        (
            lambda: Stream((answer(2, True, False, 1, invalid=True),)),
            "content 1, expected False and 0",
        ),
        (lambda: stream("", []), "no rounds"),
        (lambda: stream("..", [4, 4]), "round 2 ends at 4, after one at 4"),
        (lambda: stream("...", [2, 4, 3]), "round 3 ends at 3, after one at 4"),
        (lambda: stream(".", [2], query_time=math.nan), "query_time of a streaming item is nan"),
        (
            lambda: stream(".", [2], expected_time=math.inf),
            "expected_time of a streaming item is inf",
        ),
        (lambda: stream(".", [2], tolerance=-1), "tolerance of a streaming item is -1"),
    ],
)
def test_impossible_items_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make()


def eighths(low: int, high: int) -> st.SearchStrategy[float]:
    """Times in eighths of a second, which floats hold exactly: equal means equal."""
    return st.integers(low, high).map(lambda n: n / 8)


@st.composite
def streams(draw: st.DrawFn, *, due: bool = False) -> Stream:
    """Items of up to six rounds within 12 s, so that responses fall on either side of t* ± δ; t*
    may lie outside.
    """
    query_time = draw(eighths(0, 80))
    gaps = [draw(eighths(0, 16)), *draw(st.lists(eighths(1, 16), max_size=5))]
    rounds = []
    for time in accumulate(gaps, initial=query_time):
        state = draw(st.sampled_from("++..x"))
        content = 0.0 if state == "x" else draw(st.none() | st.floats(0, 1))
        rounds.append(answer(time, draw(st.booleans()), state == "+", content, state == "x"))
    known = eighths(0, 160).map(lambda time: query_time + time)
    expected_time = draw(known if due else st.none() | known)
    tolerance = draw(st.none() | eighths(0, 16))
    return given(
        Stream(tuple(rounds[1:])),
        query_time=query_time,
        expected_time=expected_time,
        tolerance=tolerance,
    )


def answered_at(item: Stream, number: int) -> Stream:
    """The item with its first positive response in round ``number`` (in none where there is no such
    round).
    """
    said = enumerate(item.turns)
    return Stream(
        tuple(replace(turn, positive=n == number, content=0.0, invalid=False) for n, turn in said)
    )


def scores(item: Stream) -> tuple[object, ...]:
    timed = {
        name: value
        for name, value in streaming.timed_scores(item).items()
        if name != "signed_delay"
    }
    return streaming.content_limits(item.turns), timed


@hypothesis.given(streams(), st.data())
def test_scores_lie_in_0_to_1_and_every_outcome_of_judging_within_the_limits(
    item: Stream, data: st.DataObject
) -> None:
    low, high = streaming.content_limits(item.turns)
    assert 0 <= low <= high <= 1
    assert 0 <= timed(item, "responsiveness") <= 1
    stability = timed(item, "stability")
    assert stability is None or 0 <= stability <= 1
    assert 0 <= timed(item, "invalid_rate") <= 1
    assert 0 <= streaming.overall(high, timed(item, "responsiveness")) <= 1
    judged = [
        replace(one, content=data.draw(st.floats(0, 1))) if one.content is None else one
        for one in item.turns
    ]
    content, same = streaming.content_limits(judged)
    assert content == same
    assert low - 1e-12 <= content <= high + 1e-12


@hypothesis.given(streams(due=True))
def test_responsiveness_is_1_within_the_tolerance_only_and_falls_beyond_it(item: Stream) -> None:
    due = item.turns[0].expected_time
    assert due is not None
    found = []
    for number, turn in enumerate(item.turns):
        distance, score = abs(turn.time - due), timed(answered_at(item, number), "responsiveness")
        assert (score == 1) == (distance <= streaming.tolerance(item))
        found.append((distance, score))
    found.sort()
    for (near, earlier), (far, later) in pairwise(found):
        assert earlier == later if near == far else earlier >= later


@hypothesis.given(streams(), st.integers(-50, 1000), st.sampled_from([0.25, 0.5, 2.0, 32.0]))
def test_moving_and_scaling_all_times_scales_the_delay_alone(
    item: Stream, shift: int, factor: float
) -> None:
    def change(time: float) -> float:
        return time * factor + shift

    first = item.turns[0]
    record = {
        "query_time": change(first.query_time),
        "expected_time": None if first.expected_time is None else change(first.expected_time),
        "tolerance": None if first.tolerance is None else first.tolerance * factor,
    }
    scaled = given(
        Stream(tuple(replace(turn, time=change(turn.time)) for turn in item.turns)), **record
    )
    assert scores(scaled) == scores(item)
    delay = timed(item, "signed_delay")
    assert timed(scaled, "signed_delay") == (None if delay is None else delay * factor)


@hypothesis.given(streams(due=True))
def test_an_untimely_answer_is_either_a_false_alarm_or_late_and_silence_scores_0(
    item: Stream,
) -> None:
    delay = timed(item, "signed_delay")
    untimely = delay is not None and timed(item, "responsiveness") < 1
    assert timed(item, "false_alarm_rate") == (untimely and delay is not None and delay < 0)
    silent = answered_at(item, len(item.turns))
    assert timed(silent, "responsiveness") == 0
    assert timed(silent, "stability") in (None, 0)
    assert timed(silent, "miss_rate")
    assert timed(silent, "signed_delay") is None
    assert not timed(silent, "false_alarm_rate")

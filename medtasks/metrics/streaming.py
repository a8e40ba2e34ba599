"""Scores of one streaming item from its rounds: content, responsiveness, stability, and kinds of
error.

Section 5.5 of arXiv 2607.01751. The paper fixes the weights, what a positive response is, and what
scores 1 or 0. It defines no law for early and late responses in between and no default tolerance: a
task file declares both (`medtasks.catalog.task_model.Timing`). Items that never become answerable
score as its Table 4 does: 1 for silence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TypeVar

from medtasks.catalog.items import Turn
from medtasks.catalog.task_model import HALF_GAP, Timing
from medtasks.core.errors import DataError
from medtasks.metrics.base import Array

CONTENT_WEIGHT = 0.7
RESPONSIVENESS_WEIGHT = 0.3
WEIGHTS = f"{CONTENT_WEIGHT},{RESPONSIVENESS_WEIGHT}"

EXPECTED_TIME = "first-answerable-round"
"""The expected response time of an item whose record has none."""

DUE = MappingProxyType({"default_expected": EXPECTED_TIME, "never_answerable": "silence"})
"""For signatures: `EXPECTED_TIME`, and what scores 1 if there is no expected time."""

LAW = ("law", "scale", "default_tolerance")
"""The fields of `Timing` that responsiveness depends on."""
TOLERANCE = ("default_tolerance",)
"""The fields of `Timing` that scores which do not use its law depend on."""

SAME_TIME = 1e-9
"""Times this close are equal (0.1 + 0.2 and 0.3): far less than a frame, far more than rounding
errors.
"""

Score = TypeVar("Score", float, Array)


@dataclass(frozen=True)
class Stream:
    """The rounds of one streaming item, and how their times are scored.

    All times share one unit (seconds, or frame indices); those that the item's record gives are the
    first turn's.

    Raises:
        DataError: the times or contents cannot be true.
    """

    turns: tuple[Turn, ...]
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        """Refuses what cannot be true; see `Stream`."""
        if not self.turns:
            raise DataError("a streaming item has no rounds, expected at least one")
        _check_record(self.turns[0])
        for turn in self.turns:
            _check_turn(turn)
        times = [turn.time for turn in self.turns]
        for number, (before, after) in enumerate(pairwise(times), start=2):
            if after - before <= SAME_TIME:
                raise DataError(
                    f"round {number} ends at {after}, after one at {before}; "
                    "expected increasing times"
                )

    @property
    def query_time(self) -> float:
        """t_q, where every round's window begins.

        An image sequence counts frames, and its question may be timed in seconds: then the stream
        starts with its first round.
        """
        return min(self.turns[0].query_time, self.turns[0].time)


def _check_record(first: Turn) -> None:
    """Raise `DataError` if the times in the item's record, which each turn has, cannot be true."""
    times = {"query_time": first.query_time, "expected_time": first.expected_time}
    for name, value in times.items():
        if value is not None and not math.isfinite(value):
            raise DataError(f"{name} of a streaming item is {value}, expected a finite number")
    if first.tolerance is not None and not 0 <= first.tolerance < math.inf:
        raise DataError(
            f"tolerance of a streaming item is {first.tolerance}, expected 0 or more, or None"
        )


def _check_turn(turn: Turn) -> None:
    """Raise `DataError` if the turn's time or content cannot be true."""
    if not math.isfinite(turn.time):
        raise DataError(
            f"a round's time is {turn.time}, expected a finite number of seconds or frames"
        )
    if turn.content is not None and not 0 <= turn.content <= 1:
        raise DataError(
            f"the round at {turn.time} has content {turn.content}, expected 0 to 1 or None"
        )
    if turn.invalid and (turn.positive or turn.content != 0):
        raise DataError(
            f"the round at {turn.time} is invalid with positive {turn.positive} and content "
            f"{turn.content}, expected False and 0: a response in none of the allowed states is "
            "neither"
        )


def expected_time(stream: Stream) -> float | None:
    """t* (section 5.5, "Responsiveness"): the record's, else the first answerable round's t_c,
    which is our interpretation; None if no round ever becomes answerable.
    """
    in_record = stream.turns[0].expected_time
    if in_record is not None:
        return in_record
    return next((turn.time for turn in stream.turns if turn.answerable), None)


def tolerance(stream: Stream) -> float:
    """δ of equation 7: the record's, else `Timing.default_tolerance`. A single round has no gap;
    half its distance from the query is used instead, which may be 0.
    """
    in_record = stream.turns[0].tolerance
    if in_record is not None:
        return in_record
    if stream.timing.default_tolerance != HALF_GAP:
        return float(stream.timing.default_tolerance)
    times = [turn.time for turn in stream.turns]
    if len(times) == 1:
        return (times[0] - stream.query_time) / 2
    return min(after - before for before, after in pairwise(times)) / 2


def timed_scores(stream: Stream) -> dict[str, float | None]:
    """The scores of one item that depend on its times, by metric; None if a metric does not apply.

    With the first positive response at t̂ and the expected time t*:

    - ``responsiveness``, R, 0..1: how close t̂ is to t* (section 5.5, equation 7). 1 within the
      tolerance, 0 without a positive response. In between the paper says only that the distance is
      penalized; here R falls linearly to 0, ``1 - (|t̂ - t*| - δ) / d``, with the d of `Timing`: by
      default δ, so that R is 0 from 2δ on. With d = 0, R is 0 outside the tolerance.
    - ``responsiveness_stream_length``: R with d the stream's length whatever the task declares,
      which shows whether a ranking depends on our reading of the paper.
    - ``stability``, S, 0..1: share of the rounds at or after t* that are positive (equation 8).
      None if no round is at or after t*: an empty mean is not 0.
    - ``false_alarm_rate``: whether t̂ is before t* - δ (beyond section 5.5).
    - ``miss_rate``: whether no response was positive (section 5.5, "missed responses").
    - ``signed_delay``: t̂ - t* in the item's unit of time, negative when early (beyond section
      5.5).
    - ``invalid_rate``: share of rounds whose response was none of the allowed states (response
      space: equation 5).

    If nothing ever becomes answerable (no t*), silence is the timely response: R and S are 1
    without a positive, as Table 4 has it (Lingshu's proactive R and S are both 16/311), else 0 (our
    interpretation), any positive is a false alarm, and nothing can be missed.
    """
    due = expected_time(stream)
    responded = next((turn.time for turn in stream.turns if turn.positive), None)
    scores = _scores_if_never_due(responded)
    if due is not None:
        scores = _scores_if_due(stream, due, responded)
    invalid = sum(turn.invalid for turn in stream.turns)
    return {**scores, "invalid_rate": invalid / len(stream.turns)}


def _scores_if_never_due(responded: float | None) -> dict[str, float | None]:
    """The scores of an item that never becomes answerable.

    ``responded`` is the time of the first positive response, None without any.
    """
    silence = float(responded is None)
    return {
        "responsiveness": silence,
        "responsiveness_stream_length": silence,
        "stability": silence,
        "false_alarm_rate": 1 - silence,
        "miss_rate": None,
        "signed_delay": None,
    }


def _scores_if_due(stream: Stream, due: float, responded: float | None) -> dict[str, float | None]:
    """The scores of an item that becomes answerable at ``due``.

    ``responded`` is the time of the first positive response, None without any.
    """
    scores = {
        "responsiveness": 0.0,
        "responsiveness_stream_length": 0.0,
        "stability": _stability(stream, due),
        "false_alarm_rate": 0.0,
        "miss_rate": float(responded is None),
        "signed_delay": None,
    }
    if responded is None:
        return scores
    margin = tolerance(stream)
    excess = abs(responded - due) - margin
    scores["responsiveness"] = responsiveness_at(stream, responded)
    scores["responsiveness_stream_length"] = _responsiveness(excess, _length(stream))
    scores["false_alarm_rate"] = float(responded < due - margin - SAME_TIME)
    scores["signed_delay"] = responded - due
    return scores


def responsiveness_at(stream: Stream, responded: float | None) -> float:
    """R of `timed_scores`, if the first positive response came at the time ``responded``; None if
    there was none.
    """
    due = expected_time(stream)
    if due is None:
        return float(responded is None)
    if responded is None:
        return 0.0
    margin = tolerance(stream)
    reach = margin if stream.timing.law == "tolerance" else _length(stream)
    return _responsiveness(abs(responded - due) - margin, stream.timing.scale * reach)


def _length(stream: Stream) -> float:
    """The time from the question to the last round."""
    return stream.turns[-1].time - stream.query_time


def _responsiveness(excess: float, distance: float) -> float:
    """R of a response that is ``excess`` beyond the tolerance, if R falls to 0 over
    ``distance``.
    """
    if excess <= SAME_TIME:
        return 1.0
    if distance <= SAME_TIME:
        return 0.0
    return max(0.0, 1 - excess / distance)


def _stability(stream: Stream, due: float) -> float | None:
    """S: the share of positives among the rounds at or after ``due``; None without such a round."""
    flags = [turn.positive for turn in stream.turns if turn.time >= due - SAME_TIME]
    return sum(flags) / len(flags) if flags else None


def content_limits(turns: Sequence[Turn]) -> tuple[float, float]:
    """C, 0..1: mean content of the rounds (section 5.5, after equation 6), the least and the
    greatest that the pending verdicts allow: every unjudged round 0, or every one 1.
    """
    judged = math.fsum(turn.content for turn in turns if turn.content is not None)
    pending = sum(turn.content is None for turn in turns)
    return judged / len(turns), (judged + pending) / len(turns)


def overall(content: Score, responsiveness: Score) -> Score:
    """O = 0.7 C + 0.3 R of a streaming item (equation 10). A single-turn item has no R; its O is C
    (equation 9).
    """
    return CONTENT_WEIGHT * content + RESPONSIVENESS_WEIGHT * responsiveness

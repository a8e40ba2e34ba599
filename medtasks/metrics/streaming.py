"""Scores and timelines of one streaming item from its rounds: content, responsiveness, stability,
and kinds of error.

Section 5.5 of arXiv 2607.01751. The paper fixes the weights, what a positive response is, and what
scores 1 or 0. It defines no law for early and late responses in between and no default tolerance: a
task file declares both (`medtasks.catalog.task_model.Timing`). Items that never become answerable
score as its Table 4 does: 1 for silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, TypeVar

from medtasks.catalog.items import Item, SampleView, Turn, Value
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.catalog.task_model import HALF_GAP, Timing
from medtasks.core.errors import DataError
from medtasks.core.redaction import shown
from medtasks.core.schema import Frozen
from medtasks.metrics.base import Array

CONTENT_WEIGHT = 0.7
RESPONSIVENESS_WEIGHT = 0.3
WEIGHTS = f"{CONTENT_WEIGHT},{RESPONSIVENESS_WEIGHT}"

EXPECTED_TIME = "first-answerable-round"
"""The expected response time of an item whose record has none."""

DUE = MappingProxyType({"default_expected": EXPECTED_TIME, "never_answerable": "silence"})
"""For signatures: the above, and what a perfectly responsive and stable model does if there is no
expected time.
"""

LAW = ("law", "scale", "default_tolerance")
"""The fields of `Timing` that responsiveness depends on."""
TOLERANCE = ("default_tolerance",)
"""Those that the other scores depend on, as far as the tolerance matters to them."""

SAME_TIME = 1e-9
"""Times this close are equal (0.1 + 0.2 and 0.3): far less than a frame, far more than rounding
errors.
"""

Score = TypeVar("Score", float, Array)


@dataclass(frozen=True)
class Stream:
    """The rounds of one streaming item, and how their times are scored; a :class:`DataError` if
    they cannot be true.

    All times share one unit (seconds, or frame indices); those that the item's record gives are the
    first turn's.
    """

    turns: tuple[Turn, ...]
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        if not self.turns:
            raise DataError("a streaming item has no rounds, expected at least one")
        first = self.turns[0]
        for name, value in (
            ("query_time", first.query_time),
            ("expected_time", first.expected_time),
        ):
            if value is not None and not math.isfinite(value):
                raise DataError(f"{name} of a streaming item is {value}, expected a finite number")
        if first.tolerance is not None and not 0 <= first.tolerance < math.inf:
            raise DataError(
                f"tolerance of a streaming item is {first.tolerance}, expected 0 or more, or None"
            )
        for turn in self.turns:
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
                    f"the round at {turn.time} is invalid with positive {turn.positive} and content {turn.content}, "
                    "expected False and 0: a response in none of the allowed states is neither"
                )
        for number, (before, after) in enumerate(
            pairwise(turn.time for turn in self.turns), start=2
        ):
            if after - before <= SAME_TIME:
                raise DataError(
                    f"round {number} ends at {after}, after one at {before}; expected increasing times"
                )

    @property
    def query_time(self) -> float:
        """t_q, where every round's window begins. An image sequence counts frames, and its question
        may be timed in
        seconds: then the stream starts with its first round.
        """
        return min(self.turns[0].query_time, self.turns[0].time)


def expected_time(stream: Stream) -> float | None:
    """t* (section 5.5, "Responsiveness"): the record's, else the first answerable round's t_c,
    which is our interpretation; None if no round ever becomes answerable.
    """
    given = stream.turns[0].expected_time
    return (
        next((turn.time for turn in stream.turns if turn.answerable), None)
        if given is None
        else given
    )


def tolerance(stream: Stream) -> float:
    """δ of equation 7: the record's, else `Timing.default_tolerance`. A single round has no gap;
    half its distance from the query is used instead, which may be 0.
    """
    given = stream.turns[0].tolerance
    if given is not None:
        return given
    if stream.timing.default_tolerance != HALF_GAP:
        return float(stream.timing.default_tolerance)
    times = [turn.time for turn in stream.turns]
    if len(times) == 1:
        return (times[0] - stream.query_time) / 2
    return min(after - before for before, after in pairwise(times)) / 2


def timed_scores(stream: Stream) -> dict[str, Any]:
    """The scores of one item that depend on its times, numbers by metric; None if a metric does not
    apply.

    Of a first positive response at t̂ and an expected time t*:

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
    turns, due, margin = stream.turns, expected_time(stream), tolerance(stream)
    responded = next((turn.time for turn in turns if turn.positive), None)
    timely = float(due is None and responded is None)
    scores: dict[str, Any] = {
        "responsiveness": timely,
        "responsiveness_stream_length": timely,
        "stability": timely,
        "false_alarm_rate": float(responded is not None),
        "miss_rate": None if due is None else float(responded is None),
        "signed_delay": None,
        "invalid_rate": sum(turn.invalid for turn in turns) / len(turns),
    }
    if due is not None:
        flags = [turn.positive for turn in turns if turn.time >= due - SAME_TIME]
        scores["stability"] = sum(flags) / len(flags) if flags else None
    if due is not None and responded is not None:
        length = turns[-1].time - stream.query_time
        reach = stream.timing.scale * (margin if stream.timing.law == "tolerance" else length)
        for name, distance in (("responsiveness", reach), ("responsiveness_stream_length", length)):
            excess = abs(responded - due) - margin
            if excess <= SAME_TIME:
                scores[name] = 1.0
            elif distance > SAME_TIME:
                scores[name] = max(0.0, 1 - excess / distance)
        scores["false_alarm_rate"] = float(responded < due - margin - SAME_TIME)
        scores["signed_delay"] = responded - due
    return scores


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


# --- every metric of an item, as far as judges have decided ---

OPEN = "content_open"
FALLBACK = "content_closed_fallback"


def round_values(
    samples: Sequence[SampleView], turn_of: Callable[[SampleView], Turn]
) -> Mapping[str, Value]:
    """Every metric of the item whose rounds are ``samples``.

    If a round has no response, what applies to the item is anything from 0 to 1, and a delay
    without limits.
    """
    turns = [turn_of(sample) for sample in samples]
    values = item_values(turns, samples[0].task, fallback=FALLBACK in samples[0].values)
    if any(sample.status == FAILED for sample in samples):
        for name, value in values.items():
            if name == "signed_delay" and turns[0].in_seconds:
                values[name] = Value(failed=True)
            elif value.statistics is None or value.statistics[1] != 0:
                values[name] = Value(
                    low=(0.0, 1.0), high=(1.0, 1.0), judge=value.judge, failed=True
                )
    return values


def item_values(turns: Sequence[Turn], task: str, *, fallback: bool = False) -> dict[str, Value]:
    """Every metric of one whole item of ``task``; ``fallback`` adds the content with judged
    mismatches.
    """
    first, stream = turns[0], _stream(turns, task)
    limits, judge = content_limits(turns), _judge(turns)
    content = _value(*limits, judge)
    values = {
        "content": content,
        "content_closed": content._replace(judge=None) if first.closed else _NO_VALUE,
        OPEN: _NO_VALUE if first.closed else content,
    }
    if fallback:
        judged = [
            replace(turn, content=turn.fallback, judge=turn.fallback_judge) if turn.closed else turn
            for turn in turns
        ]
        decided = _value(*content_limits(judged), _judge(judged))
        values |= {FALLBACK: decided if first.closed else _NO_VALUE, "content_fallback": decided}
    timed = timed_scores(stream) if first.streaming else {}
    if not first.in_seconds and timed:
        timed["signed_delay"] = None
    for law in ("", "_stream_length"):
        low, high = limits
        if timed:
            low, high = (overall(end, timed[f"responsiveness{law}"]) for end in limits)
        values[f"overall{law}"] = _value(low, high, judge)
    return values | {
        name: _NO_VALUE if one is None else _value(one, one) for name, one in timed.items()
    }


def _stream(turns: Sequence[Turn], task: str) -> Stream:
    return Stream(tuple(turns), load_spec(task).metadata.timing or Timing())


def _judge(turns: Sequence[Turn]) -> str | None:
    """The judge of an item's turns; None if a turn still needs a judge."""
    if any(turn.content is None and turn.judge is None for turn in turns):
        return None
    return next((turn.judge for turn in turns if turn.judge is not None), None)


def _value(low: float, high: float, judge: str | None = None) -> Value:
    if low == high:
        return Value(statistics=(low, 1.0), judge=judge)
    return Value(low=(low, 1.0), high=(high, 1.0), judge=judge)


_NO_VALUE = Value(statistics=(0.0, 0.0))  # of a metric that does not apply to the item


# --- timelines ---

MOST_TIMELINES = 12  # items shown per task, the first by id
LONGEST_RESPONSE = 400  # characters of a response


class Round(Frozen):
    """One round of a streaming item; ``said`` is the extracted response."""

    time: float
    answerable: bool
    positive: bool
    valid: bool
    content: float | None
    said: str


class Timeline(Frozen):
    """One model's responses to a streaming item; times are in the item's unit (seconds or
    frames).
    """

    model: str
    task: str
    item: str
    query_time: float
    expected_time: float | None
    tolerance: float
    rounds: tuple[Round, ...]


def timelines(
    task: str, items: Sequence[Item], turn_of: Callable[[SampleView], Turn]
) -> tuple[Timeline, ...]:
    """The first `MOST_TIMELINES` streaming items; ``expected_time`` and ``tolerance`` are those
    used for the scores.
    """
    found: list[Timeline] = []
    made = (
        (item, [turn_of(view) for view in item.samples])
        for item in sorted(items, key=lambda one: one.item_id)
    )
    streams = ((item, turns) for item, turns in made if turns[0].streaming)
    for item, turns in islice(streams, MOST_TIMELINES):
        rounds = []
        for turn, view in zip(turns, item.samples, strict=True):
            text = shown(view.filtered)
            rounds.append(
                Round(
                    **{
                        name: getattr(turn, name)
                        for name in ("time", "answerable", "positive", "content")
                    },
                    valid=not turn.invalid,
                    said=text if len(text) <= LONGEST_RESPONSE else text[:LONGEST_RESPONSE] + "…",
                )
            )
        stream = _stream(turns, task)
        found.append(
            Timeline(
                model="",  # a board knows its name
                task=task,
                item=item.item_id,
                query_time=stream.query_time,
                expected_time=expected_time(stream),
                tolerance=tolerance(stream),
                rounds=tuple(rounds),
            )
        )
    return tuple(found)

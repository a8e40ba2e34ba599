"""Scores of a streaming item from its rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from medtasks.catalog.benchmark import FAILED, Item, SampleView, Turn, Value
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_model import Timing
from medtasks.core.redaction import shown
from medtasks.core.schema import Frozen
from medtasks.metrics import streaming
from medtasks.metrics.streaming import Stream

OPEN = "content_open"
FALLBACK = "content_closed_fallback"


def round_values(samples: Sequence[SampleView], turn_of: Callable[[SampleView], Turn]) -> Mapping[str, Value]:
    """Every metric of the item whose rounds are ``samples``.

    If a round has no response, what applies to the item is anything from 0 to 1, and a delay without limits.
    """
    turns = [turn_of(sample) for sample in samples]
    first, stream = turns[0], _stream(turns, samples[0].task)
    limits, judge = streaming.content_limits(turns), _judge(turns)
    content = _value(*limits, judge)
    values = {
        "content": content,
        "content_closed": content._replace(judge=None) if first.closed else _NO_VALUE,
        OPEN: _NO_VALUE if first.closed else content,
    }
    if FALLBACK in samples[0].values:  # with mismatches of closed items judged
        judged = [
            replace(turn, content=turn.fallback, judge=turn.fallback_judge) if turn.closed else turn for turn in turns
        ]
        decided = _value(*streaming.content_limits(judged), _judge(judged))
        values |= {FALLBACK: decided if first.closed else _NO_VALUE, "content_fallback": decided}
    timed = streaming.timed_scores(stream) if first.streaming else {}
    if not first.in_seconds and timed:
        timed["signed_delay"] = None
    for law in ("", "_stream_length"):
        low, high = limits
        if timed:
            low, high = (streaming.overall(end, timed[f"responsiveness{law}"]) for end in limits)
        values[f"overall{law}"] = _value(low, high, judge)
    values |= {name: _NO_VALUE if one is None else _value(one, one) for name, one in timed.items()}
    if any(sample.status == FAILED for sample in samples):
        for name, value in values.items():
            if name == "signed_delay" and first.in_seconds:
                values[name] = Value(failed=True)
            elif value.statistics is None or value.statistics[1] != 0:
                values[name] = Value(low=(0.0, 1.0), high=(1.0, 1.0), judge=value.judge, failed=True)
    return values


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
    """One model's responses to a streaming item; times are in the item's unit (seconds or frames)."""

    model: str
    task: str
    item: str
    query_time: float
    expected_time: float | None
    tolerance: float
    rounds: tuple[Round, ...]


def timelines(task: str, items: Sequence[Item], turn_of: Callable[[SampleView], Turn]) -> tuple[Timeline, ...]:
    """The first `MOST_TIMELINES` streaming items; ``expected_time`` and ``tolerance`` are those used for the scores."""
    found: list[Timeline] = []
    made = ((item, [turn_of(view) for view in item.samples]) for item in sorted(items, key=lambda one: one.item_id))
    streams = ((item, turns) for item, turns in made if turns[0].streaming)
    for item, turns in islice(streams, MOST_TIMELINES):
        rounds = []
        for turn, view in zip(turns, item.samples, strict=True):
            text = shown(view.filtered)
            rounds.append(
                Round(
                    **{name: getattr(turn, name) for name in ("time", "answerable", "positive", "content")},
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
                expected_time=streaming.expected_time(stream),
                tolerance=streaming.tolerance(stream),
                rounds=tuple(rounds),
            )
        )
    return tuple(found)

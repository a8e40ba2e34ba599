"""Every metric of one item of rounds, as far as judges have decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from medtasks.catalog.items import SampleView, Turn, Value
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED, MISSED
from medtasks.catalog.task_model import Timing
from medtasks.metrics.streaming import Stream, content_limits, overall, timed_scores

OPEN = "content_open"
FALLBACK = "content_closed_fallback"

_NOT_APPLICABLE = Value(statistics=(0.0, 0.0))
"""A mean's statistics (sum, count) over no observations."""


def round_values(
    samples: Sequence[SampleView], turn_of: Callable[[SampleView], Turn]
) -> Mapping[str, Value]:
    """Every metric of the item whose rounds are ``samples``.

    If a round has no response, every metric that applies to the item is open between 0 and 1; a
    delay has no limits.
    """
    turns = turns_of(samples, turn_of)
    values = item_values(turns, samples[0].task, fallback=FALLBACK in samples[0].values)
    if not any(sample.status == FAILED for sample in samples):
        return values
    for name, value in values.items():
        if name == "signed_delay" and turns[0].in_seconds:
            values[name] = Value(failed=True)
        elif not _is_without_observations(value):
            worst, best = (0.0, 1.0), (1.0, 1.0)  # sum and count of one observation
            values[name] = Value(low=worst, high=best, judge=value.judge, failed=True)
    return values


def turns_of(samples: Sequence[SampleView], turn_of: Callable[[SampleView], Turn]) -> list[Turn]:
    """The turns of an item's rounds; ``turn_of`` need not know about missed ones."""
    turns = []
    for sample in samples:
        turn = turn_of(sample)
        if sample.status == MISSED:
            turn = replace(turn, missed=True, invalid=False)
        turns.append(turn)
    return turns


def _is_without_observations(value: Value) -> bool:
    """Whether the metric does not apply to the item: the count, its second statistic, is 0."""
    return value.statistics is not None and value.statistics[1] == 0


def item_values(turns: Sequence[Turn], task: str, *, fallback: bool = False) -> dict[str, Value]:
    """Every metric of one whole item of ``task``; ``fallback`` adds the content with judged
    mismatches.
    """
    limits = content_limits(turns)
    judge = _judge(turns)
    values = _content_values(_value(*limits, judge), is_closed=turns[0].closed)
    if fallback:
        values |= _fallback_values(turns)
    timed = _timed_scores(turns, task)
    for law in ("", "_stream_length"):
        overall_limits = _overall_limits(limits, timed.get(f"responsiveness{law}"))
        values[f"overall{law}"] = _value(*overall_limits, judge)
    for name, score in timed.items():
        values[name] = _NOT_APPLICABLE if score is None else _value(score, score)
    return values


def stream_of(turns: Sequence[Turn], task: str) -> Stream:
    """The rounds of one item of ``task``, under the timing that the task declares."""
    return Stream(tuple(turns), load_spec(task).metadata.timing or Timing())


def _content_values(content: Value, *, is_closed: bool) -> dict[str, Value]:
    """The content of an item, which is that of closed or of open questions."""
    if is_closed:
        without_judge = content._replace(judge=None)
        return {"content": content, "content_closed": without_judge, OPEN: _NOT_APPLICABLE}
    return {"content": content, "content_closed": _NOT_APPLICABLE, OPEN: content}


def _fallback_values(turns: Sequence[Turn]) -> dict[str, Value]:
    """The content of an item if a judge decides on closed answers that do not match."""
    judged_turns = []
    for turn in turns:
        if turn.closed:
            turn = replace(turn, content=turn.fallback, judge=turn.fallback_judge)
        judged_turns.append(turn)
    content = _value(*content_limits(judged_turns), _judge(judged_turns))
    closed = content if turns[0].closed else _NOT_APPLICABLE
    return {FALLBACK: closed, "content_fallback": content}


def _timed_scores(turns: Sequence[Turn], task: str) -> dict[str, float | None]:
    """The scores of an item that depend on its times; empty for one that is not streamed."""
    stream = stream_of(turns, task)
    if not turns[0].streaming:
        return {}
    scores = timed_scores(stream)
    if not turns[0].in_seconds:
        scores["signed_delay"] = None
    return scores


def _overall_limits(
    limits: tuple[float, float], responsiveness: float | None
) -> tuple[float, float]:
    """The limits of the overall score by those of the content, which are its own if responsiveness
    does not apply.
    """
    if responsiveness is None:
        return limits
    low, high = limits
    return overall(low, responsiveness), overall(high, responsiveness)


def _judge(turns: Sequence[Turn]) -> str | None:
    """The judge of an item's turns; None if a turn still needs a judge."""
    if any(turn.content is None and turn.judge is None for turn in turns):
        return None
    return next((turn.judge for turn in turns if turn.judge is not None), None)


def _value(low: float, high: float, judge: str | None = None) -> Value:
    """The value of a mean over items, between two limits until all verdicts are there."""
    if low == high:
        return Value(statistics=(low, 1.0), judge=judge)
    return Value(low=(low, 1.0), high=(high, 1.0), judge=judge)

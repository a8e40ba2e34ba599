"""Timelines: a model's responses to streaming items over time, as a leaderboard shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from medtasks.catalog.items import Item, SampleView, Turn
from medtasks.core.redaction import shown
from medtasks.core.schema import Frozen
from medtasks.metrics.stream_values import stream_of, turns_of
from medtasks.metrics.streaming import expected_time, tolerance

MOST_TIMELINES = 12
"""Items shown per task, the first by id."""
LONGEST_RESPONSE = 400
"""Characters of a response."""


class Round(Frozen):
    """One round of a streaming item; ``said`` is the extracted response, or ``(missed)`` if the
    model of a paced run was still busy.
    """

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
    first: list[Timeline] = []
    for item in sorted(items, key=lambda item: item.item_id):
        turns = turns_of(item.samples, turn_of)
        if turns[0].streaming:
            first.append(_timeline(task, item, turns))
        if len(first) == MOST_TIMELINES:
            break
    return tuple(first)


def _timeline(task: str, item: Item, turns: Sequence[Turn]) -> Timeline:
    """The timeline of one item, without the model's name."""
    stream = stream_of(turns, task)
    rounds = []
    for turn, sample in zip(turns, item.samples, strict=True):
        rounds.append(_round(turn, sample))
    return Timeline(
        model="",  # only a board has the names of models
        task=task,
        item=item.item_id,
        query_time=stream.query_time,
        expected_time=expected_time(stream),
        tolerance=tolerance(stream),
        rounds=tuple(rounds),
    )


def _round(turn: Turn, sample: SampleView) -> Round:
    """One round as it is displayed: a long response is cut off."""
    response = shown(sample.filtered)
    if len(response) > LONGEST_RESPONSE:
        response = response[:LONGEST_RESPONSE] + "…"
    if turn.missed:
        response = "(missed)"
    return Round(
        time=turn.time,
        answerable=turn.answerable,
        positive=turn.positive,
        valid=not turn.invalid,
        content=turn.content,
        said=response,
    )

"""Timelines of streaming items: a model's responses in the scored rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from medtasks.benchmarks.streams import stream_of, timing_of
from medtasks.catalog.benchmark import Item, SampleView, Turn
from medtasks.metrics import streaming

from ..intake.redaction import shown
from .board import Round, Timeline

MOST = 12
"""Items shown per task, the first by id."""
LONGEST = 400  # characters of a response


def timelines(
    model: str, task: str, items: Sequence[Item], turn_of: Callable[[SampleView], Turn]
) -> tuple[Timeline, ...]:
    """The first `MOST` streaming items among the joined ``items``; times as in the item.

    ``expected_time`` and ``tolerance`` are those used for the scores: a record's own or the defaults.
    """
    found: list[Timeline] = []
    for item in sorted(items, key=lambda item: item.item_id):
        turns = [turn_of(view) for view in item.samples]
        if turns[0].streaming and len(found) < MOST:
            found.append(_timeline(model, task, item, turns))
    return tuple(found)


def _timeline(model: str, task: str, item: Item, turns: Sequence[Turn]) -> Timeline:
    stream = stream_of(turns, timing_of(task))
    return Timeline(
        model=model,
        task=task,
        item=item.item_id,
        query_time=stream.query_time,
        expected_time=streaming.expected_time(stream),
        tolerance=streaming.tolerance(stream),
        rounds=tuple(
            Round(
                time=turn.time,
                answerable=turn.answerable,
                positive=turn.positive,
                valid=not turn.invalid,
                content=turn.content,
                said=_cut(view.filtered),
            )
            for turn, view in zip(turns, item.samples, strict=True)
        ),
    )


def _cut(text: str) -> str:
    text = shown(text)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"

"""When the rounds of streams are due in a paced run (``MEDTASKS_PACE=realtime``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from medtasks.catalog.items import SampleView, Turn
from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import UsageError
from medtasks.core.settings import Pace
from medtasks.core.text import counted


class StreamRound(NamedTuple):
    """The stream that a document is a round of, and the round's time in seconds of the stream."""

    item: str
    number: int
    time: float


StreamRounds = Mapping[int, StreamRound]
"""The rounds of a task's streams by the number of their document."""


def is_of_streams(spec: TaskSpec) -> bool:
    """Whether the documents of a task are rounds of streams."""
    return spec.metadata.timing is not None and spec.benchmark.stream.timeline is not None


def paced_rounds(
    tasks: Iterable[tuple[TaskSpec, Any]], pace: Pace | None, processes: int
) -> dict[str, StreamRounds]:
    """The rounds of the tasks that are paced; none without a ``pace``.

    Args:
        tasks: our tasks of the run, each with the harness's object.
        pace: the pace of the run.
        processes: the number of processes of the run.

    Raises:
        UsageError: there are several processes, no task is of streams, or a stream is timed in
            frames of an unknown rate.
    """
    if pace is None:
        return {}
    if processes > 1:
        raise UsageError(
            f"MEDTASKS_PACE is {pace} and the run has {processes} processes, expected 1: the "
            "harness would divide the rounds of one stream among them; start one process, which "
            "may use several GPUs."
        )
    paced: dict[str, StreamRounds] = {}
    names: list[str] = []
    for spec, task in tasks:
        names.append(spec.name)
        if is_of_streams(spec):
            paced[spec.name] = _rounds_of_task(spec, task.eval_docs, pace)
    if not paced:
        raise UsageError(
            f"MEDTASKS_PACE is {pace}, but no task of the run is of streams ({', '.join(names)}); "
            "leave it out, or add such a task (`medtasks list`)."
        )
    return paced


def _rounds_of_task(
    spec: TaskSpec, documents: Iterable[Mapping[str, Any]], pace: Pace
) -> StreamRounds:
    """The rounds of a task by document number."""
    rounds: dict[int, StreamRound] = {}
    in_frames: dict[str, None] = {}
    for number, document in enumerate(documents):
        turn = _turn_of(spec, document)
        time = pace.seconds(turn.time, in_seconds=turn.in_seconds)
        if time is None:
            in_frames[turn.item] = None
        else:
            rounds[number] = StreamRound(turn.item, turn.number, time)
    if in_frames:
        streams = counted(len(in_frames), "stream")
        raise UsageError(
            f"{spec.name}: {streams} of image sequences are timed in frames (the first is "
            f"{next(iter(in_frames))}), but MEDTASKS_PACE is {pace}, which needs seconds; set "
            "MEDTASKS_PACE=realtime@FPS with their frames per second (realtime@25)."
        )
    return rounds


def _turn_of(spec: TaskSpec, document: Mapping[str, Any]) -> Turn:
    """The round that a document is, as if its response were empty."""
    view = SampleView(
        sample_id=document["sample_id"],
        cluster=document["cluster"],
        document=document,
        filtered="",
        status="empty",
        task=spec.name,
    )
    timeline = spec.benchmark.stream.timeline
    if timeline is None:
        raise UsageError(f"{spec.name} is not of streams.")
    return timeline(view)

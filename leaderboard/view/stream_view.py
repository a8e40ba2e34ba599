"""The time axis of a streaming item: its window, the rounds and answers of every run, and when an answer was due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtasks.benchmarks.variants import joined_items
from medtasks.results.samples import Sample
from medtasks.spec import load_spec

from ..board import Round, Timeline
from ..timelines import timelines


@dataclass(frozen=True)
class Mark:
    """A round on the axis; ``at`` is its place in per cent, ``sample_id`` that of its sample."""

    at: str
    sample_id: str
    round: Round
    here: bool


@dataclass(frozen=True)
class Lane:
    """The rounds of one run."""

    label: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class StreamView:
    """The axis: places in per cent of its width, with the times that they mean.

    ``window`` is (start, width), ``due`` t* with its tolerance as (start, width); None if the item has none. ``frames``
    are the places of the frames that this round shows.
    """

    line: Timeline
    start: float
    end: float
    asked: str
    window: tuple[str, str] | None
    window_times: tuple[float, float] | None
    expected: str | None
    due: tuple[str, str] | None
    frames: tuple[str, ...]
    lanes: tuple[Lane, ...]


def timeline_of(rounds: Sequence[Sample]) -> Timeline | None:
    """The timeline of the samples of one item; None if a round is missing or the item is not a stream."""
    benchmark = load_spec(rounds[0].task).benchmark if rounds else None
    if benchmark is None or benchmark.timeline is None:
        return None
    items = joined_items(benchmark, [one.view() for one in rounds]).items
    return next(iter(timelines("", rounds[0].task, items, benchmark.timeline)), None)


def stream_view(sample: Sample, rounds: Mapping[tuple[str, str], Sequence[Sample]]) -> StreamView | None:
    """The axis of the item of ``sample``; None if it is not a stream.

    Args:
        sample: a round of the item, of the first run.
        rounds: the item's samples in order, by the key and the label of their run.
    """
    lines = {key: line for key, samples in rounds.items() if (line := timeline_of(samples)) is not None}
    first = next(iter(rounds))
    if first not in lines:
        return None
    line, document = lines[first], sample.document
    times = [float(time) for time in document.get("times") or ()]
    first_time, last_time = document.get("window_start"), document.get("window_end")
    window = None if first_time is None or last_time is None else (float(first_time), float(last_time))
    expected = line.expected_time
    due = None if expected is None else (expected - line.tolerance, expected + line.tolerance)
    known = [line.query_time, *times, *(window or ()), *(due or ()), *(one.time for one in line.rounds)]
    start, end = min(known), max(known)

    def place(time: float) -> str:
        return f"{2 + 96 * (time - start) / ((end - start) or 1):.2f}%"

    def span(low: float, high: float) -> tuple[str, str]:
        return place(low), f"{max(0.4, 96 * (high - low) / ((end - start) or 1)):.2f}%"

    def lane(key: tuple[str, str], told: Timeline) -> Lane:
        held = zip(rounds[key], told.rounds, strict=True)
        marks = (Mark(place(turn.time), one.sample_id, turn, one.sample_id == sample.sample_id) for one, turn in held)
        return Lane(key[1], tuple(marks))

    return StreamView(
        line=line,
        start=start,
        end=end,
        asked=place(line.query_time),
        window=None if window is None else span(*window),
        window_times=window,
        expected=None if expected is None else place(expected),
        due=None if due is None else span(*due),
        frames=tuple(map(place, times)),
        lanes=tuple(lane(key, told) for key, told in lines.items()),
    )

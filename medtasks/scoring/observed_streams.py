"""The streams of a run with the seconds of their rounds, or why those are not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from medtasks.catalog.items import SampleView, Turn
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.settings import read_pace
from medtasks.metrics.stream_clock import ClockedStream, RoundClock
from medtasks.metrics.stream_values import stream_of, turns_of
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Sample, lacks_texts
from medtasks.runs.times import RequestTime
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scored_samples import scored_samples

_FAILED = "failed"
_NOT_MEASURED = "not measured"
_IN_FRAMES = "timed in frames"


class MeasuredStream(NamedTuple):
    """A whole stream of a task with the seconds of every round, ``batched`` of which were answered
    together with other requests.
    """

    task: str
    item: str
    cluster: str
    clocked: ClockedStream
    batched: int


class UnmeasuredStream(NamedTuple):
    """A whole stream of a task whose seconds are not known, for this reason."""

    reason: str


ObservedStream: TypeAlias = MeasuredStream | UnmeasuredStream
"""A whole stream of a run."""


def observed_streams(
    run: RunRecord, task: str, times: Iterable[RequestTime], folder: Path | None = None
) -> list[ObservedStream]:
    """The whole streams of a task, in the order of their ids; none if the task is not of streams.

    If the run was read without its samples, they are those in its result directory ``folder``, with
    answers extracted by the rules of this version; without ``folder`` there are no streams.

    Raises:
        DataError: the samples cannot be read; names file, line and field.
    """
    spec = load_spec(task)
    if spec.metadata.timing is None or spec.benchmark.stream.timeline is None:
        return []
    time_of = {time.sample_id: time for time in times}
    rounds_of_item: dict[str, list[SampleView]] = {}
    samples = run.samples.get(task)
    if samples is None:
        samples = _stored_samples(spec, folder)
    for sample in samples:
        item = str(sample.document.get("item_id", sample.sample_id))
        rounds_of_item.setdefault(item, []).append(sample.view())
    pace = run.manifest.tasks[task].pace
    streams: list[ObservedStream] = []
    for _, views in sorted(rounds_of_item.items()):
        observed = _observed_stream(spec, views, time_of, pace)
        if observed is not None:
            streams.append(observed)
    return streams


def _stored_samples(spec: TaskSpec, folder: Path | None) -> list[Sample]:
    """The samples of a task in a result directory, scored under the rules of this version."""
    if folder is None:
        return []
    path = folder / "samples" / f"{spec.name}.jsonl"
    if not path.is_file():
        return []
    samples = list(SampleFile(path))
    return [] if lacks_texts(samples) else scored_samples(spec, samples)


def _observed_stream(
    spec: TaskSpec, views: Sequence[SampleView], time_of: Mapping[str, RequestTime], pace: str
) -> ObservedStream | None:
    """The stream with these rounds, in any order; None if some are missing, as with a limit."""
    timeline = spec.benchmark.stream.timeline
    assert timeline is not None
    paired = list(zip(turns_of(views, timeline), views, strict=True))
    paired.sort(key=lambda turn_and_view: turn_and_view[0].number)
    turns = [turn for turn, _ in paired]
    first = turns[0]
    if len(turns) < first.rounds:
        return None
    times = [time_of.get(view.sample_id) for _, view in paired]
    unit = _unit(first, pace)
    if unit is None:
        return UnmeasuredStream(_IN_FRAMES)
    reason = _why_not_measured(times)
    if reason is not None:
        return UnmeasuredStream(reason)
    clocks = [_clock(turn, first, time, unit) for turn, time in zip(turns, times, strict=True)]
    batched = sum(time is not None and time.is_batched for time in times)
    clocked = ClockedStream(stream_of(turns, spec.name), tuple(clocks), unit)
    return MeasuredStream(spec.name, first.item, views[0].cluster, clocked, batched)


def _unit(turn: Turn, pace: str) -> float | None:
    """How many units of a stream's time are a second; None for frames of an unknown rate."""
    if turn.in_seconds:
        return 1.0
    stated = read_pace(pace)
    return None if stated is None else stated.frames_per_second


def _why_not_measured(times: Sequence[RequestTime | None]) -> str | None:
    """Why the seconds of a stream's rounds are not known; None if they are."""
    for time in times:
        if time is None:
            return _NOT_MEASURED
        if time.failed:
            return _FAILED
        if time.seconds is None and not time.missed:
            return _NOT_MEASURED
    return None


def _clock(turn: Turn, first: Turn, time: RequestTime | None, unit: float) -> RoundClock:
    """The seconds of a round; in a paced run, the delay is that of the stream's own clock."""
    if time is None or time.missed or time.seconds is None:
        return RoundClock(None, None)
    delay = time.seconds
    if time.paced is not None and time.paced.answered is not None:
        delay = time.paced.answered - (turn.time - first.time) / unit
    return RoundClock(time.seconds, delay)

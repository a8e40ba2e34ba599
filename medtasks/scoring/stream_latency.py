"""Whether a model keeps up with streams, and what its scores are when computing takes time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

from medtasks.catalog.items import SampleView, Turn
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.settings import read_pace
from medtasks.metrics.stream_clock import (
    ClockedStream,
    RoundClock,
    answered_in_time,
    real_time_factors,
    responsiveness_with_computing,
)
from medtasks.metrics.stream_values import stream_of, turns_of
from medtasks.metrics.streaming import RESPONSIVENESS_WEIGHT
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Sample, lacks_texts
from medtasks.runs.times import RequestTime
from medtasks.runs.usage import Count
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.latency_figures import (
    Observations,
    RoundedEstimate,
    mean_figure,
    percentile_figures,
)
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scored_samples import scored_samples

_FAILED = "failed"
_NOT_MEASURED = "not measured"
_IN_FRAMES = "timed in frames"


class RoundLatency(BaseModel, frozen=True):
    """The real-time factors of the rounds with one number, in all streams that have a next one."""

    number: int
    rounds: Count
    real_time_factor_median: RoundedEstimate
    real_time_factor_p95: RoundedEstimate


class StreamLatency(BaseModel, frozen=True):
    """How a model keeps up with the streams of a task or group.

    Args:
        streams: whole streams of the run.
        measured: those of which the seconds of every round are known, of which the figures are.
        without: the others by reason.
        pace: that of a paced run; empty if rounds do not wait.
        rounds: rounds of the measured streams; ``missed`` of them were missed, ``batched`` were
            answered together with other requests, so that their seconds are an upper bound.
        real_time_factor_median, real_time_factor_p95: percentiles of the seconds of computing by
            the seconds until the next round is due, over answered rounds that have a next one.
        by_round: the same by number of the round; windows grow from round to round.
        answered_in_time: share of the rounds with a next one whose answer was there when that one
            was due. A missed round was not answered in time.
        responsiveness, responsiveness_with_computing: means over the measured streams, by the
            stream's time alone (as in the paper), and with the seconds of computing added to the
            time of each answer.
        overall, overall_with_computing: means over the measured streams with all verdicts and, in a
            group, its other items; ``scored`` counts both. The two differ by the responsiveness.
    """

    streams: Count
    measured: Count
    without: dict[str, Count] = Field(default_factory=dict)
    pace: str = ""
    rounds: Count = 0
    missed: Count = 0
    batched: Count = 0
    real_time_factor_median: RoundedEstimate | None = None
    real_time_factor_p95: RoundedEstimate | None = None
    by_round: tuple[RoundLatency, ...] = ()
    answered_in_time: RoundedEstimate | None = None
    responsiveness: RoundedEstimate | None = None
    responsiveness_with_computing: RoundedEstimate | None = None
    scored: Count = 0
    overall: RoundedEstimate | None = None
    overall_with_computing: RoundedEstimate | None = None


class ObservedStream(NamedTuple):
    """A whole stream of a task: ``clocked`` is None if its seconds are not known, for the reason
    ``without``.
    """

    task: str
    item: str
    cluster: str
    clocked: ClockedStream | None
    without: str = ""
    batched: int = 0


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
    for sample in _stored_samples(spec, folder) if samples is None else samples:
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
    place = spec.name, first.item, views[0].cluster
    unit = _unit(first, pace)
    without = _why_without_clock(times, unit)
    if without or unit is None:
        return ObservedStream(*place, None, without)
    clocks = [_clock(turn, first, time, unit) for turn, time in zip(turns, times, strict=True)]
    batched = sum(time is not None and time.is_batched for time in times)
    clocked = ClockedStream(stream_of(turns, spec.name), tuple(clocks), unit)
    return ObservedStream(*place, clocked, batched=batched)


def _unit(turn: Turn, pace: str) -> float | None:
    """How many units of a stream's time are a second; None for frames of an unknown rate."""
    if turn.in_seconds:
        return 1.0
    stated = read_pace(pace)
    return None if stated is None else stated.frames_per_second


def _why_without_clock(times: Sequence[RequestTime | None], unit: float | None) -> str:
    """Why the seconds of a stream are not known; empty if they are."""
    if unit is None:
        return _IN_FRAMES
    for time in times:
        if time is None:
            return _NOT_MEASURED
        if time.failed:
            return _FAILED
        if time.seconds is None and not time.missed:
            return _NOT_MEASURED
    return ""


def _clock(turn: Turn, first: Turn, time: RequestTime | None, unit: float) -> RoundClock:
    """The seconds of a round; in a paced run, the delay is that of the stream's own clock."""
    if time is None or time.missed or time.seconds is None:
        return RoundClock(None, None)
    delay = time.seconds
    if time.paced is not None and time.paced.answered is not None:
        delay = time.paced.answered - (turn.time - first.time) / unit
    return RoundClock(time.seconds, delay)


def stream_latency(
    streams: Sequence[ObservedStream], table: ItemTable, pace: str
) -> StreamLatency | None:
    """The figures of some streams of a task or group with the item ``table``; None without streams.

    Args:
        streams: the whole streams of the task, or of the group's tasks.
        table: all items, with their scores.
        pace: the pace of the run.
    """
    if not streams:
        return None
    measured = [stream for stream in streams if stream.clocked is not None]
    without = Counter(stream.without for stream in streams if stream.clocked is None)
    counts = {
        "streams": len(streams),
        "measured": len(measured),
        "without": dict(sorted(without.items())),
        "pace": pace,
    }
    if not measured:
        return StreamLatency.model_validate(counts)
    factors = _factors_by_round(measured)
    every_factor = [factor for of_round in factors.values() for factor in of_round]
    median, p95 = percentile_figures(every_factor)
    return StreamLatency.model_validate(
        {
            **counts,
            "rounds": sum(len(_clocks(stream)) for stream in measured),
            "missed": sum(clock.delay is None for stream in measured for clock in _clocks(stream)),
            "batched": sum(stream.batched for stream in measured),
            "real_time_factor_median": median,
            "real_time_factor_p95": p95,
            "by_round": _round_figures(factors),
            "answered_in_time": mean_figure(_in_time(measured)),
            **_score_figures(measured, table),
        }
    )


def _clocks(stream: ObservedStream) -> tuple[RoundClock, ...]:
    """The clocks of a measured stream."""
    return () if stream.clocked is None else stream.clocked.rounds


def _factors_by_round(streams: Sequence[ObservedStream]) -> dict[int, Observations]:
    """The real-time factors by number of the round, from 1."""
    factors: dict[int, Observations] = {}
    for stream in streams:
        if stream.clocked is None:
            continue
        for number, factor in enumerate(real_time_factors(stream.clocked), start=1):
            if factor is not None:
                factors.setdefault(number, []).append((factor, stream.cluster))
    return factors


def _round_figures(factors: Mapping[int, Observations]) -> list[RoundLatency]:
    """The percentiles of the real-time factors of each round."""
    figures: list[RoundLatency] = []
    for number, of_round in sorted(factors.items()):
        median, p95 = percentile_figures(of_round)
        assert median is not None
        assert p95 is not None
        figures.append(
            RoundLatency(
                number=number,
                rounds=len(of_round),
                real_time_factor_median=median,
                real_time_factor_p95=p95,
            )
        )
    return figures


def _in_time(streams: Sequence[ObservedStream]) -> Observations:
    """Whether each round with a next one was answered in time, as 1 or 0."""
    observations: Observations = []
    for stream in streams:
        if stream.clocked is not None:
            for in_time in answered_in_time(stream.clocked):
                observations.append((float(in_time), stream.cluster))
    return observations


# --- scores with the seconds of computing ---


def _score_figures(
    streams: Sequence[ObservedStream], table: ItemTable
) -> dict[str, RoundedEstimate | int | None]:
    """Responsiveness and overall score, by the stream's time and with computing."""
    with_computing: dict[tuple[str, str], float] = {}
    for stream in streams:
        if stream.clocked is not None:
            value = responsiveness_with_computing(stream.clocked)
            with_computing[stream.task, stream.item] = value
    timed: Observations = []
    shifted: Observations = []
    overall: Observations = []
    overall_shifted: Observations = []
    for row, place in enumerate(zip(table.tasks, table.items, strict=True)):
        if not table.complete[row]:
            continue
        cluster = table.clusters[row]
        responsiveness = _value(table, "responsiveness", row)
        score = _value(table, "overall", row)
        gain = 0.0
        if place in with_computing and responsiveness is not None:
            gain = with_computing[place] - responsiveness
            timed.append((responsiveness, cluster))
            shifted.append((with_computing[place], cluster))
        elif load_spec(place[0]).metadata.timing is not None:
            continue  # a stream without seconds
        if score is not None:
            overall.append((score, cluster))
            overall_shifted.append((score + RESPONSIVENESS_WEIGHT * gain, cluster))
    return {
        "responsiveness": mean_figure(timed),
        "responsiveness_with_computing": mean_figure(shifted),
        "scored": len(overall),
        "overall": mean_figure(overall),
        "overall_with_computing": mean_figure(overall_shifted),
    }


def _value(table: ItemTable, metric: str, row: int) -> float | None:
    """An item's value of a mean; None if it is open, or if the metric does not apply."""
    if metric not in table.columns:
        return None
    total, count = table.columns[metric].statistics[row].tolist()
    if math.isnan(total) or not count:
        return None
    return float(total / count)

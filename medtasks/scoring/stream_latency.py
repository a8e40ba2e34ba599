"""Whether a model keeps up with streams, and what its scores are when computing takes time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from medtasks.catalog.spec import load_spec
from medtasks.metrics.stream_clock import (
    answered_in_time,
    real_time_factors,
    responsiveness_with_computing,
)
from medtasks.metrics.streaming import RESPONSIVENESS_WEIGHT
from medtasks.runs.usage import Count
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.latency_figures import (
    Observations,
    RoundedEstimate,
    mean_figure,
    percentile_figures,
)
from medtasks.scoring.observed_streams import MeasuredStream, ObservedStream


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
    measured: list[MeasuredStream] = []
    reasons = Counter[str]()
    for stream in streams:
        if isinstance(stream, MeasuredStream):
            measured.append(stream)
        else:
            reasons[stream.reason] += 1
    counts = {
        "streams": len(streams),
        "measured": len(measured),
        "without": dict(sorted(reasons.items())),
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
            "rounds": sum(len(stream.clocked.rounds) for stream in measured),
            "missed": sum(stream.clocked.missed for stream in measured),
            "batched": sum(stream.batched for stream in measured),
            "real_time_factor_median": median,
            "real_time_factor_p95": p95,
            "by_round": _round_figures(factors),
            "answered_in_time": mean_figure(_in_time(measured)),
            **_score_figures(measured, table),
        }
    )


def _factors_by_round(streams: Sequence[MeasuredStream]) -> dict[int, Observations]:
    """The real-time factors by number of the round, from 1."""
    factors: dict[int, Observations] = {}
    for stream in streams:
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


def _in_time(streams: Sequence[MeasuredStream]) -> Observations:
    """Whether each round with a next one was answered in time, as 1 or 0."""
    observations: Observations = []
    for stream in streams:
        for in_time in answered_in_time(stream.clocked):
            observations.append((float(in_time), stream.cluster))
    return observations


# --- scores with the seconds of computing ---


def _score_figures(
    streams: Sequence[MeasuredStream], table: ItemTable
) -> dict[str, RoundedEstimate | int | None]:
    """Responsiveness and overall score, by the stream's time and with computing."""
    with_computing: dict[tuple[str, str], float] = {}
    for stream in streams:
        place = stream.task, stream.item
        with_computing[place] = responsiveness_with_computing(stream.clocked)
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

"""How long a model took to answer: ``latency.json``, computed from the times of its requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from medtasks.core.files import canonical_json
from medtasks.runs.manifest import RunManifest
from medtasks.runs.times import RequestTime, Times, has_times, read_times
from medtasks.runs.usage import Count
from medtasks.scoring.latency_figures import (
    Observations,
    RoundedEstimate,
    percentile_figures,
    significant,
)
from medtasks.scoring.observed_streams import ObservedStream, observed_streams
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.stream_latency import StreamLatency, stream_latency
from medtasks.stats.quantiles import ratio

LATENCY = "latency.json"
"""The file of the latency in a result directory."""
FAILED = "failed"
"""Why a request has no seconds: there is no response."""
NOT_MEASURED = "not measured"
"""Why a request has no seconds: it was answered before seconds were kept, or by no model."""
MISSED = "missed"
"""Why a request has no seconds: a round of a paced stream was not sent."""
UNKNOWN_HARDWARE = "unknown"
"""The hardware behind an API or a function."""


class Latency(BaseModel, frozen=True):
    """How long the requests of a task or group took, in seconds.

    Args:
        requests: requests to the model; every round is one.
        measured: those whose seconds are known, of which the figures are.
        without: the others by reason.
        batched: how many of the measured were answered together with others. Their seconds are
            those of the whole batch, an upper bound of what one alone would take.
        in_flight: the most requests that the model worked on at once.
        repeated: measured requests that were sent more than once; their seconds are those of all
            attempts.
        clusters: clusters of the measured samples.
        median, p95: the 50th and the 95th percentile of the seconds.
        first_tokens: measured requests whose first token's time is known.
        first_token_median, first_token_p95: percentiles of the seconds to the first token.
        queued_median: the median of the seconds in which requests waited for others of the run;
            they are not part of any other figure.
        output_tokens_per_second: tokens of the responses by the seconds of their requests; the
            seconds of a batch count once.
        hardware: how many measured requests were answered by which devices; ``unknown`` behind an
            API.
        stream: how the model keeps up with streams; None for tasks that are not of streams, and if
            there are no samples.
    """

    requests: Count
    measured: Count
    without: dict[str, Count] = Field(default_factory=dict)
    batched: Count = 0
    in_flight: Count = 0
    repeated: Count = 0
    clusters: Count = 0
    median: RoundedEstimate | None = None
    p95: RoundedEstimate | None = None
    first_tokens: Count = 0
    first_token_median: RoundedEstimate | None = None
    first_token_p95: RoundedEstimate | None = None
    queued_median: float | None = None
    output_tokens_per_second: RoundedEstimate | None = None
    hardware: dict[str, Count] = Field(default_factory=dict)
    stream: StreamLatency | None = Field(default=None, exclude_if=lambda value: value is None)


class RunLatency(BaseModel, frozen=True):
    """The latency of a run's tasks and groups.

    Args:
        processes: processes of the run, each of which sent its share of the requests.
        tasks, groups: the latency of each.
        reason: why there are no seconds; None if there are some.
    """

    processes: Count
    tasks: dict[str, Latency] = Field(default_factory=dict)
    groups: dict[str, Latency] = Field(default_factory=dict)
    reason: str | None = None

    @property
    def entries(self) -> dict[str, Latency]:
        """The latency of groups, then of tasks."""
        return {**self.groups, **self.tasks}


class Observed(NamedTuple):
    """A request of a task and the cluster of its sample."""

    time: RequestTime
    cluster: str


def run_latency(run: RunRecord, times: Times, folder: Path | None = None) -> RunLatency:
    """The latency of the scored ``run`` with these ``times``.

    A task without times has no entry; a group has the requests of its tasks that have some. How the
    model keeps up with streams is known only from samples: those of ``run`` or, if it was read
    without them, of its result directory ``folder``.
    """
    observed: dict[str, list[Observed]] = {}
    streams: dict[str, list[ObservedStream]] = {}
    for task in run.manifest.tasks:
        if times.get(task) and task in run.tasks:
            observed[task] = observed_requests(run, task, times[task])
            streams[task] = observed_streams(run, task, times[task], folder)
    if not has_times(times):
        return RunLatency(processes=run.manifest.processes, reason=why_no_seconds(run.manifest))
    tasks: dict[str, Latency] = {}
    for task in observed:
        tasks[task] = _latency_of_tasks(run, task, [task], observed, streams)
    groups: dict[str, Latency] = {}
    for group, members in run.manifest.groups.items():
        if any(observed.get(task) for task in members):
            groups[group] = _latency_of_tasks(run, group, members, observed, streams)
    return RunLatency(processes=run.manifest.processes, tasks=tasks, groups=groups)


def _latency_of_tasks(
    run: RunRecord,
    name: str,
    members: Sequence[str],
    observed: Mapping[str, Sequence[Observed]],
    streams: Mapping[str, Sequence[ObservedStream]],
) -> Latency:
    """The latency of the task or group ``name`` with these tasks."""
    requests: list[Observed] = []
    streams_of_members: list[ObservedStream] = []
    paces: set[str] = set()
    for task in members:
        requests += observed.get(task, [])
        streams_of_members += streams.get(task, [])
        if streams.get(task):
            paces.add(run.manifest.tasks[task].pace)
    latency = latency_of(requests)
    if not streams_of_members:
        return latency
    table = run.tables.of(name, members)
    stream = stream_latency(streams_of_members, table, ", ".join(sorted(paces)))
    return latency.model_copy(update={"stream": stream})


def observed_requests(run: RunRecord, task: str, times: Sequence[RequestTime]) -> list[Observed]:
    """The requests of a task with the clusters of their samples.

    A sample that the run does not have is a cluster of its own.
    """
    table = run.tables.of(task)
    cluster_of: dict[str, str] = {}
    for samples, cluster in zip(table.samples, table.clusters, strict=True):
        cluster_of |= dict.fromkeys(samples, cluster)
    return [Observed(time, cluster_of.get(time.sample_id, time.sample_id)) for time in times]


def latency_of(requests: Sequence[Observed]) -> Latency:
    """The latency of some requests."""
    measured: list[Observed] = []
    without: Counter[str] = Counter()
    for request in requests:
        if request.time.failed:
            without[FAILED] += 1
        elif request.time.missed:
            without[MISSED] += 1
        elif request.time.seconds is None:
            without[NOT_MEASURED] += 1
        else:
            measured.append(request)
    if not measured:
        return Latency(requests=len(requests), measured=0, without=dict(sorted(without.items())))
    times = [request.time for request in measured]
    hardware = Counter(time.hardware or UNKNOWN_HARDWARE for time in times)
    median, p95 = _percentiles(measured, "seconds")
    first_token_median, first_token_p95 = _percentiles(measured, "first_token")
    return Latency(
        requests=len(requests),
        measured=len(measured),
        without=dict(sorted(without.items())),
        batched=sum(time.is_batched for time in times),
        in_flight=max(time.in_flight for time in times),
        repeated=sum(time.attempts > 1 for time in times),
        clusters=len({request.cluster for request in measured}),
        median=median,
        p95=p95,
        first_tokens=sum(time.first_token is not None for time in times),
        first_token_median=first_token_median,
        first_token_p95=first_token_p95,
        queued_median=_median_of_queued(times),
        output_tokens_per_second=_tokens_per_second(measured),
        hardware=dict(sorted(hardware.items())),
    )


def _percentiles(
    requests: Sequence[Observed], field: str
) -> tuple[RoundedEstimate | None, RoundedEstimate | None]:
    """Median and 95th percentile of a field of the times, over the requests that have it."""
    observed: Observations = []
    for request in requests:
        value = getattr(request.time, field)
        if value is not None:
            observed.append((value, request.cluster))
    return percentile_figures(observed)


def _median_of_queued(times: Iterable[RequestTime]) -> float | None:
    """The median of the seconds in queues, an observed value; None if it is unknown for all."""
    queued = [time.queued for time in times if time.queued is not None]
    return significant(median_low(queued)) if queued else None


def _tokens_per_second(requests: Sequence[Observed]) -> RoundedEstimate | None:
    """Tokens by seconds, over the requests whose tokens were counted; a batch counts once."""
    tokens: list[float] = []
    seconds: list[float] = []
    clusters: list[str] = []
    for request in requests:
        time = request.time
        if time.output_tokens is not None and time.seconds is not None:
            tokens.append(time.output_tokens)
            seconds.append(time.seconds / time.batch)
            clusters.append(request.cluster)
    if not tokens:
        return None
    estimate = ratio(np.array(tokens), np.array(seconds), clusters)
    return None if estimate is None else RoundedEstimate.of(estimate)


def why_no_seconds(manifest: RunManifest) -> str:
    """A sentence about why a run has no seconds."""
    if manifest.is_imported:
        return "no seconds: the responses were made elsewhere"
    if not manifest.usage.seconds:
        return "no seconds: the back-end runs no model"
    return "no seconds: the run was made with a version of medtasks that did not keep them"


def write_latency(folder: Path, latency: RunLatency) -> None:
    """Write ``latency.json`` into the result directory ``folder``."""
    content = canonical_json(latency.model_dump(mode="json"), indent=1)
    (folder / LATENCY).write_text(content + "\n", encoding="utf-8")


def latency_in(folder: Path, run: RunRecord) -> RunLatency:
    """The latency of the scored ``run`` from the times in its result directory ``folder``.

    Raises:
        DataError: the times cannot be read; names file, line and field.
    """
    return run_latency(run, read_times(folder))

"""The rows of one run in the table of latencies, as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from medtasks.python_api.columns import RUN_COLUMNS
from medtasks.scoring.latency import FAILED, MISSED, NOT_MEASURED, Latency, RunLatency
from medtasks.scoring.latency_figures import RoundedEstimate

_FIGURES = {
    "median": "median of the seconds from sending a request to its whole answer",
    "p95": "95th percentile of these seconds",
    "first_token_median": "median of the seconds to the first token; null if unknown",
    "first_token_p95": "95th percentile of the seconds to the first token; null if unknown",
    "output_tokens_per_second": "tokens of the responses by the seconds of their requests",
}
"""Figures with an interval, by their fields in `medtasks.scoring.latency.Latency`."""
_STREAM_FIGURES = {
    "real_time_factor_median": "median of seconds of computing by seconds until the next round",
    "real_time_factor_p95": "95th percentile of the same",
    "answered_in_time": "share of rounds whose answer was there when the next round was due",
    "responsiveness": "responsiveness of the measured streams, by the stream's time alone",
    "responsiveness_with_computing": "the same with the seconds of computing added",
    "overall": "overall score of the measured streams and a group's other items",
    "overall_with_computing": "the same with the seconds of computing added",
}
"""Figures of streams with an interval, by their fields in
`medtasks.scoring.stream_latency.StreamLatency`; null for tasks that are not of streams.
"""
_STREAM_COUNTS = {
    "streams": "number of whole streams; null for tasks that are not of streams",
    "measured_streams": "number of streams of which the seconds of every round are known",
}
_COUNTS = {
    "requests": "number of requests to the model; every round is one",
    "measured": "number of requests whose seconds are known",
    "failed": "number of requests without a response, which have no seconds",
    "missed": "number of rounds that a paced run missed, which have no seconds",
    "not_measured": "number of other requests without seconds",
    "batched": "number of measured requests answered together with others, in the batch's seconds",
    "in_flight": "the most requests that the model worked on at once",
    "repeated": "number of measured requests that were sent more than once",
    "clusters": "number of clusters of the measured samples",
    "processes": "number of processes that sent requests",
}


def _columns() -> dict[str, str]:
    """What each column holds, by name."""
    columns = {**RUN_COLUMNS, "task": "task or group", **_COUNTS}
    columns |= _STREAM_COUNTS
    for name, description in {**_FIGURES, **_STREAM_FIGURES}.items():
        columns[name] = description
        columns[f"{name}_low"] = f"lower end of the 95 % interval of `{name}`; null if unlimited"
        columns[f"{name}_high"] = f"upper end of the 95 % interval of `{name}`; null if unlimited"
    columns["queued_median"] = "median of the seconds in which requests waited for others before"
    columns["hardware"] = "devices that answered, unknown behind an API; several with commas"
    columns["reason"] = "why the run has no seconds; null if it has some"
    return columns


LATENCIES: Mapping[str, str] = _columns()
"""Columns of `Run.latency`."""


def latency_table(name: str, model: str, latency: RunLatency) -> Any:
    """A row for each task and group with times; without any, one row with the reason."""
    rows: list[dict[str, object]] = []
    for task, entry in latency.entries.items():
        rows.append({"task": task, **_row(entry)})
    if not rows:
        rows.append({"reason": latency.reason})
    for row in rows:
        row |= {"run": name, "model": model, "processes": latency.processes}
    schema = pa.schema([(column, _type_of(column)) for column in LATENCIES])
    return pa.Table.from_pylist(rows, schema=schema)


def _row(latency: Latency) -> dict[str, object]:
    """The columns of a task or group."""
    row: dict[str, object] = latency.model_dump(include={*_COUNTS, "queued_median"})
    row["failed"] = latency.without.get(FAILED, 0)
    row["missed"] = latency.without.get(MISSED, 0)
    row["not_measured"] = latency.without.get(NOT_MEASURED, 0)
    row["hardware"] = ", ".join(latency.hardware)
    for name in _FIGURES:
        row |= _figure(name, getattr(latency, name))
    stream = latency.stream
    if stream is not None:
        row |= {"streams": stream.streams, "measured_streams": stream.measured}
        for name in _STREAM_FIGURES:
            row |= _figure(name, getattr(stream, name))
    return row


def _figure(name: str, figure: RoundedEstimate | None) -> dict[str, float | None]:
    """The columns of a figure and the ends of its interval; none without a figure."""
    if figure is None:
        return {}
    low, high = figure.interval
    return {name: figure.value, f"{name}_low": low, f"{name}_high": high}


def _type_of(column: str) -> pa.DataType:
    """The type of a column."""
    if column in _COUNTS or column in _STREAM_COUNTS:
        return pa.int64()
    if column in (*RUN_COLUMNS, "task", "hardware", "reason"):
        return pa.string()
    return pa.float64()

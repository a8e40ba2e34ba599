"""The table of streams that ``medtasks score`` prints below the latency of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks.cli.console import table, write

if TYPE_CHECKING:
    from medtasks.scoring.latency import RunLatency
    from medtasks.scoring.latency_figures import Figure
    from medtasks.scoring.stream_latency import StreamLatency

_COLUMNS = (
    "task",
    "streams",
    "real-time factor",
    "95th percentile",
    "rounds in time",
    "responsiveness",
    "with computing",
    "overall",
    "with computing",
)


def show_stream_latency(latency: RunLatency) -> None:
    """A row for each task and group of streams, and what the figures depend on; nothing without
    streams.
    """
    rows = []
    notes: dict[str, None] = {}
    for name, entry in latency.entries.items():
        if entry.stream is not None and entry.stream.measured:
            rows.append((name, *_cells(entry.stream)))
            notes |= dict.fromkeys(_notes(name, entry.stream))
    if not rows:
        return
    table(_COLUMNS, rows, title="\nStreams on the clock")
    for note in notes:
        write(f"  {note}")


def _cells(stream: StreamLatency) -> tuple[str, ...]:
    """The figures of a task or group as text."""
    measured = f"{stream.measured:,}"
    if stream.measured < stream.streams:
        measured += f" of {stream.streams:,}"
    return (
        measured,
        _text(stream.real_time_factor_median),
        _text(stream.real_time_factor_p95),
        _text(stream.answered_in_time),
        _text(stream.responsiveness),
        _text(stream.responsiveness_with_computing),
        _text(stream.overall),
        _text(stream.overall_with_computing),
    )


def _notes(name: str, stream: StreamLatency) -> list[str]:
    """What a reader of the figures must know, a line each."""
    notes = []
    if stream.pace:
        notes.append(
            f"{name}: {stream.missed:,} of {stream.rounds:,} rounds missed ({stream.pace})"
        )
    if stream.batched:
        notes.append(
            f"{name}: {stream.batched:,} of {stream.rounds:,} rounds batched: their seconds are "
            "those of the whole batch, an upper bound"
        )
    for reason, count in stream.without.items():
        notes.append(f"{name}: {count:,} of {stream.streams:,} streams left out ({reason})")
    return notes


def _text(figure: Figure | None) -> str:
    """A figure with its interval; an end that the data do not limit is ``?``."""
    if figure is None:
        return ""
    low, high = figure.interval
    if low is None and high is None:
        return _number(figure.value)
    return f"{_number(figure.value)} [{_number(low)}, {_number(high)}]"


def _number(value: float | None) -> str:
    """A number with three digits after the point, or three significant ones if it is large."""
    if value is None:
        return "?"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.0f}"

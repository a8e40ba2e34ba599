"""The table of streams that ``medtasks score`` prints below the latency of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks.cli.console import table, write
from medtasks.cli.latency_tables import figure_text

if TYPE_CHECKING:
    from medtasks.scoring.latency import RunLatency
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
        figure_text(stream.real_time_factor_median),
        figure_text(stream.real_time_factor_p95),
        figure_text(stream.answered_in_time),
        figure_text(stream.responsiveness),
        figure_text(stream.responsiveness_with_computing),
        figure_text(stream.overall),
        figure_text(stream.overall_with_computing),
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

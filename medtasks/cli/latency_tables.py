"""The table of latency that ``medtasks score`` prints below the scores of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from medtasks.cli.console import table, write
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.scoring.latency import Latency, RunLatency
    from medtasks.scoring.latency_figures import RoundedEstimate

_COLUMNS = ("task", "requests", "median", "95th percentile", "first token", "tokens/s")


def show_latency(latency: RunLatency) -> None:
    """A row for each task and group, and what the seconds depend on; nothing without seconds."""
    rows = []
    for name, entry in latency.entries.items():
        if entry.measured:
            rows.append((name, *_cells(entry)))
    if not rows:
        return
    table(_COLUMNS, rows, title="\nLatency in seconds")
    write(f"  {_conditions(latency)}")


def _cells(latency: Latency) -> tuple[str, ...]:
    """The figures of a task or group as text."""
    measured = f"{latency.measured:,}"
    if latency.measured < latency.requests:
        measured += f" of {latency.requests:,}"
    return (
        measured,
        figure_text(latency.median),
        figure_text(latency.p95),
        figure_text(latency.first_token_median),
        figure_text(latency.output_tokens_per_second),
    )


def figure_text(figure: RoundedEstimate | None) -> str:
    """A figure with its interval: ``1.20 [1.10, 1.35]``; empty without one.

    An end that the data do not limit is ``?``.
    """
    if figure is None:
        return ""
    low, high = figure.interval
    if low is None and high is None:
        return _number(figure.value)
    return f"{_number(figure.value)} [{_number(low)}, {_number(high)}]"


def _number(value: float | None) -> str:
    """A number with three significant digits, and all digits before the point.

    >>> _number(1234.5), _number(99.96), _number(0.5)
    ('1234', '100', '0.500')
    """
    if value is None:
        return "?"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"


def _conditions(latency: RunLatency) -> str:
    """On what hardware the requests were answered, and how many together."""
    measured = 0
    batched = 0
    in_flight = 0
    hardware: Counter[str] = Counter()
    for entry in latency.tasks.values():
        measured += entry.measured
        batched += entry.batched
        in_flight = max(in_flight, entry.in_flight)
        hardware.update(entry.hardware)
    words = [f"hardware: {', '.join(sorted(hardware))}"]
    words.append(counted(latency.processes, "process", "processes"))
    words.append(f"at most {counted(in_flight, 'request')} at once")
    if batched:
        words.append(f"{batched:,} of {measured:,} batched (seconds of the whole batch)")
    return "; ".join(words)

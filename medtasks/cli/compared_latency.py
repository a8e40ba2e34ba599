"""The latency of two runs in the output of ``medtasks compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from medtasks.cli.console import table, write
from medtasks.core.text import counted, printable
from medtasks.leaderboard.board.latency_measures import MEASURES
from medtasks.leaderboard.rank.latency_comparison import (
    LatencyComparison,
    LatencyNotCompared,
    compare_latency,
)
from medtasks.leaderboard.schema.numbers import UNIT_LABELS, difference, interval, number
from medtasks.metrics.facts import Unit
from medtasks.runs.find import finished_run
from medtasks.runs.times import NO_TIMES, Times, read_times

if TYPE_CHECKING:
    from medtasks.leaderboard.verify.scored_run import ScoredRun
    from medtasks.scoring.latency_figures import RoundedEstimate

Compared: TypeAlias = LatencyComparison | LatencyNotCompared | None
"""The latency of two runs; None if neither has seconds."""


def compared_latency(
    runs: tuple[ScoredRun, ScoredRun], folders: tuple[Path, Path], task: str
) -> Compared:
    """The latency of the runs in two directories, in a task or group."""
    first, second = runs
    times = (_times(first, folders[0]), _times(second, folders[1]))
    return compare_latency(runs, times, task)


def _times(run: ScoredRun, folder: Path) -> Times:
    """The times of a run's requests; none if they cannot be used."""
    return NO_TIMES if run.latency.reason is not None else read_times(finished_run(folder))


def show_latency(latency: Compared) -> None:
    """Print a row for each figure of both runs and their paired difference, or why they are not
    compared.
    """
    if latency is None:
        return
    write("")
    if isinstance(latency, LatencyNotCompared):
        write(printable(f"Latency of {latency.task} is not compared: {latency.reason}."))
        return
    rows: list[tuple[str, ...]] = []
    for measure in MEASURES:
        first, second = measure.of(latency.first), measure.of(latency.second)
        if first is not None or second is not None:
            texts = (_figure_text(first, measure.unit), _figure_text(second, measure.unit))
            rows.append((measure.label, UNIT_LABELS[measure.unit], *texts))
    table((f"latency of {latency.task}", "unit", "A", "B"), rows)
    write(printable(f"  Both ran on {latency.setup}."))
    if not latency.setup.is_known:
        write("  The hardware of the two may differ, and so may the network and other load.")
    write(f"  {_difference_text(latency)}")


def _figure_text(figure: RoundedEstimate | None, unit: Unit) -> str:
    """A figure with its interval in brackets; empty without one."""
    if figure is None:
        return ""
    low, high = figure.interval
    ends = interval(low, high, unit)
    value = number(figure.value, unit)
    return f"{value} ({ends})" if ends else value


def _difference_text(latency: LatencyComparison) -> str:
    """The paired difference in a sentence, or why there is none."""
    if latency.setup.batched != "none":
        return "No paired difference: requests of a batch have the seconds of the whole batch."
    if latency.difference is None:
        return "No paired difference: the runs have no measured request in common."
    value, low, high = latency.difference
    ends = interval(low, high, "duration")
    interval_text = f" (95 % interval {ends})" if ends else ""
    over = f"{counted(latency.paired, 'request')} in {counted(latency.clusters, 'cluster')}"
    return f"Median of A - B by request: {difference(value, 'duration')} s{interval_text}; {over}."

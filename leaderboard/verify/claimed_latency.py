"""The latency that a result directory claims: seconds cannot be measured again from responses."""

from __future__ import annotations

from pathlib import Path

from medtasks.core.errors import DataError, first_line
from medtasks.core.redaction import shown
from medtasks.scoring.latency import Latency, RunLatency, latency_in
from medtasks.scoring.run_record import RunRecord

NO_LATENCY = RunLatency(processes=1, reason="no seconds: they are not in the run's directory")
"""The latency of a run without a directory."""


def claimed_latency(directory: Path, record: RunRecord) -> RunLatency:
    """The latency of a scored run by the times in its result directory; without times that can be
    read, the reason alone.

    Names of devices are redacted like all text of a submission.
    """
    try:
        latency = latency_in(directory, record)
    except DataError as error:
        problem = first_line(error).removeprefix(f"{directory}").lstrip("/\\").rstrip(".")
        return RunLatency(
            processes=record.manifest.processes, reason=f"no seconds: {shown(problem)}"
        )
    tasks = {task: _redacted(of_task) for task, of_task in latency.tasks.items()}
    groups = {group: _redacted(of_group) for group, of_group in latency.groups.items()}
    return latency.model_copy(update={"tasks": tasks, "groups": groups})


def _redacted(latency: Latency) -> Latency:
    """The latency with the names of devices as boards show them."""
    hardware: dict[str, int] = {}
    for name, count in latency.hardware.items():
        hardware[shown(name)] = hardware.get(shown(name), 0) + count
    return latency.model_copy(update={"hardware": hardware})

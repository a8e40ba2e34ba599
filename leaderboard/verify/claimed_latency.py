"""The latency that a result directory claims: seconds cannot be measured again from responses."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from medtasks.catalog.spec import load_spec, load_specs
from medtasks.core.errors import DataError, first_line
from medtasks.core.files import file_sha256
from medtasks.core.redaction import shown
from medtasks.runs.times import TIMES
from medtasks.scoring.latency import Latency, RunLatency, latency_in
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import read_manifest
from medtasks.scoring.run_record import RunRecord

NO_LATENCY = RunLatency(processes=1, reason="no seconds: the run is not read from a directory")
"""The latency of a run without a directory."""


def times_state(directory: Path) -> str:
    """Hashes of the files with the times in a result directory, which are not part of its content;
    empty if it has none.
    """
    paths = sorted((directory / TIMES).glob("*.jsonl"))
    return " ".join(_hash_if_readable(path) for path in paths)


def _hash_if_readable(path: Path) -> str:
    """The hash of a file with times; without it the run is scored, and only its latency is missing,
    for a reason that `read_times` states.
    """
    try:
        return file_sha256(path)
    except OSError:
        return "unreadable"


class TimedRun:
    """The latency of the run in a result directory.

    Args:
        directory: the result directory.
        store: keeps the latency.
        key: that of the run in the store, and how it is scored; empty if nothing is kept.
    """

    def __init__(self, directory: Path, store: RunStore, key: str) -> None:
        self._directory = directory
        self._store = store
        self._state = times_state(directory)
        self._key = store.key("latency", key, self._state) if key and self._state else ""

    @property
    def needs_samples(self) -> bool:
        """Whether the latency is computed from the samples, too: that of streams is."""
        if not self._state:
            return False
        installed = load_specs()
        tasks = read_manifest(self._directory).tasks
        return any(
            task in installed and load_spec(task).metadata.timing is not None for task in tasks
        )

    @cached_property
    def kept_latency(self) -> RunLatency | None:
        """The latency that was kept for these times; None without any."""
        entry = self._store.read(self._key) if self._key else None
        return None if entry is None else RunLatency.model_validate(entry.content)

    def latency(self, record: RunRecord) -> RunLatency:
        """The latency of the scored run, which is kept; without times that can be read, the reason
        alone.

        Names of devices are redacted like all text of a submission.
        """
        if self.kept_latency is not None:
            return self.kept_latency
        try:
            latency = latency_in(self._directory, record)
        except DataError as error:
            return RunLatency(
                processes=record.manifest.processes,
                reason=f"no seconds: {shown(self._problem(error))}",
            )
        tasks = {task: _redacted(of_task) for task, of_task in latency.tasks.items()}
        groups = {group: _redacted(of_group) for group, of_group in latency.groups.items()}
        redacted = latency.model_copy(update={"tasks": tasks, "groups": groups})
        if self._key:
            self._store.write(self._key, redacted.model_dump(mode="json"), {})
        return redacted

    def _problem(self, error: DataError) -> str:
        """What an error says of the times, without the path of the result directory."""
        return first_line(error).removeprefix(f"{self._directory}").lstrip("/\\").rstrip(".")


def _redacted(latency: Latency) -> Latency:
    """The latency with the names of devices as boards show them."""
    hardware: dict[str, int] = {}
    for name, count in latency.hardware.items():
        hardware[shown(name)] = hardware.get(shown(name), 0) + count
    return latency.model_copy(update={"hardware": hardware})

"""The audit of the runs in result directories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.text import first_names
from medtasks.runs.find import no_run
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Sample
from medtasks.scoring.amended import samples_as_scored

from ..intake.collect import Progress, collect, find_everything
from ..schema.board import Refused
from ..verify.scored_run import RunStore, ScoredRun
from .answered_questions import AnsweredRun
from .audit_report import AuditReport, audit_runs


def audit_folders(paths: Sequence[Path], progress: Progress = lambda _, __: None) -> AuditReport:
    """The audit of all runs in ``paths``.

    Raises:
        UsageError: there is no run.
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    runs, refused = collect(paths, RunStore(cache_root() / "scores"), progress)
    if not runs:
        raise _nothing_to_audit(paths, refused)
    folder_of_digest = {run.content: run.directory for run in find_everything(paths).runs}
    answered = [answered_run(run, folder_of_digest[run.digest]) for run in runs]
    return audit_runs(answered).with_notes(_refusals(refused))


def _nothing_to_audit(paths: Sequence[Path], refused: Sequence[Refused]) -> UsageError:
    """The error that no run can be read, with the reasons."""
    reasons = [f"{run.folder}: {run.reason.rstrip('.')}" for run in refused if run.has_run]
    if not reasons:
        return no_run(paths[0])
    return UsageError(f"no run can be audited: {first_names(reasons, 3, '; ')}.")


def _refusals(refused: Sequence[Refused]) -> Iterator[str]:
    """A note on each run that cannot be read."""
    for run in refused:
        yield f"{run.folder}: left out ({run.reason.rstrip('.')})"


def answered_run(run: ScoredRun, folder: Path) -> AnsweredRun:
    """The run with its samples in ``folder``, which are read when they are asked for."""
    return AnsweredRun(run, partial(_samples_of, run, folder))


def _samples_of(run: ScoredRun, folder: Path, task: str) -> Iterator[Sample]:
    """The samples of a task as they are scored here."""
    file = SampleFile(folder / "samples" / f"{task}.jsonl")
    return samples_as_scored(file, run.record.amended.get(task, b""))

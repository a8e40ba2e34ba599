"""The check of submissions to a leaderboard: each run, runs beside each other, and the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from medtasks.core.errors import MachineError, MedtasksError, machine_fault
from medtasks.core.replacement import recover_directory
from medtasks.runs.find import name_below
from medtasks.scoring.run_folder import read_run

from ..verify.rejudging import AGREEMENT, Rejudged
from ..verify.scored_run import ScoredRun, scored_run
from .check_files import SubmittedRun, check_files, secret_patterns
from .check_run import check_run
from .collect import LOGS, Everything, find_everything, submission_name
from .compare_submissions import compare_submissions
from .submission import STRICT, Requirements, Submission
from .submission_findings import SubmissionFinding, problem

AskAgain = Callable[[ScoredRun], Iterator[Rejudged]]
"""Asks a judge again about some of a run's verdicts."""


@dataclass(frozen=True)
class CheckReport:
    """The result of a check: what was checked, and the findings.

    ``folders`` are the directories, ``submissions`` the names of the submissions, ``findings`` are
    formatted by `medtasks.core.findings`, and ``rejudged`` says how far verdicts agree with those
    that were asked again. A submission's name is its path below the given root and its model. Files
    beside the results are named by the root.
    """

    folders: tuple[str, ...]
    submissions: tuple[str, ...]
    findings: tuple[SubmissionFinding, ...]
    rejudged: tuple[Rejudged, ...] = ()


@dataclass
class _CheckedRun:
    """What the check of one result directory found.

    ``tasks`` are those of the manifest or, if it cannot be read, of the files; ``scored`` is None
    if the run cannot be read.
    """

    tasks: Sequence[str]
    findings: list[SubmissionFinding]
    scored: ScoredRun | None = None
    rejudged: Sequence[Rejudged] = ()


def check_results(
    paths: Sequence[Path],
    required: Requirements = STRICT,
    *,
    rescore: bool = True,
    ask_again: AskAgain | None = None,
    environment: Mapping[str, str] = os.environ,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> CheckReport:
    """Check the result directories in ``paths``; nothing is changed.

    ``docs/leaderboard.md`` lists what is checked.

    Args:
        paths: result directories, or trees that contain some.
        required: what is required of each run.
        rescore: compute learned metrics again (the slowest part).
        ask_again: asks a judge again about some of a run's verdicts
            (`medtasks.leaderboard.verify.rejudging.rejudge`).
        environment: variables whose secrets are searched for.
        progress: called with the number of runs done and of all runs.

    Raises:
        UsageError: a path is not a directory.
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    secrets = secret_patterns(environment)
    everything = find_everything(paths)
    folders = [run.directory for run in everything.runs]
    names = {run.directory: submission_name(run) for run in everything.runs}
    checked: dict[Path, _CheckedRun] = {}
    for number, folder in enumerate(folders):
        progress(number, len(folders))
        checked[folder] = _check_folder(
            folder, names[folder], required, rescore=rescore, ask_again=ask_again
        )

    findings = [*_empty_paths(paths, folders), *_unread_directories(paths, everything)]
    for run in checked.values():
        findings += run.findings
    submitted = {}
    for folder, run in checked.items():
        submitted[folder.resolve()] = SubmittedRun(names[folder], run.tasks)
    for finding in check_files(
        paths, submitted, secrets, public=required.public, demonstration=required.demonstration
    ):
        findings.append(replace(finding, submission=finding.where))
    scored = {folder: run.scored for folder, run in checked.items() if run.scored is not None}
    findings += compare_submissions(scored, names)
    progress(len(folders), len(folders))
    submissions = dict.fromkeys([*names.values(), *(finding.submission for finding in findings)])
    return CheckReport(
        folders=tuple(map(str, folders)),
        submissions=tuple(submissions),
        findings=tuple(findings),
        rejudged=tuple(chain.from_iterable(run.rejudged for run in checked.values())),
    )


def _empty_paths(paths: Sequence[Path], folders: Sequence[Path]) -> Iterator[SubmissionFinding]:
    """Findings about paths without a result directory."""
    resolved = [folder.resolve() for folder in folders]
    for path in dict.fromkeys(paths):
        if any(folder.is_relative_to(path.resolve()) for folder in resolved):
            continue
        name = path.resolve().name
        observed = "it contains no result directory"
        yield problem("LB101", name, observed, file=path, submission=name)


def _unread_directories(
    paths: Sequence[Path], everything: Everything
) -> Iterator[SubmissionFinding]:
    """Findings about links to result directories, and about directories that cannot be listed."""
    for path, unread in everything.unread.items():
        if unread == LOGS:
            # logs are named with the files, whatever task they are of
            continue
        code = "LB104" if path.is_symlink() else "LB102"
        name = name_below(path, paths)
        yield problem(code, name, unread.what, fix=unread.fix, file=path, submission=name)


def _check_folder(
    folder: Path,
    name: str,
    required: Requirements,
    *,
    rescore: bool,
    ask_again: AskAgain | None,
) -> _CheckedRun:
    """Check one result directory, which is the submission ``name``."""
    recorded_tasks = [path.stem for path in (folder / "samples").glob("*.jsonl")]
    checked = _CheckedRun(recorded_tasks, [])
    recover_directory(folder)
    if not (folder / "scores.json").is_file():
        checked.findings.append(_missing_scores(name))
    try:
        submission = _read_submission(folder, name, required)
        checked.tasks = list(submission.manifest.tasks)
        findings = list(check_run(submission, learned=rescore))
    except Exception as error:  # untrusted input
        fault = machine_fault(error)
        if fault is not None:
            raise fault from error
        checked.findings.append(_unreadable(error, folder, name))
        return checked
    checked.findings += [replace(finding, submission=name) for finding in findings]
    checked.scored = submission.scored
    if ask_again is not None:
        _ask_again(checked, submission, ask_again)
    return checked


def _missing_scores(name: str) -> SubmissionFinding:
    """The finding about a result directory without ``scores.json``."""
    return problem(
        "LB102",
        name,
        "scores.json is missing",
        expected="the scores of the run",
        fix="restore it, or run `medtasks score`",
        submission=name,
    )


def _read_submission(folder: Path, name: str, required: Requirements) -> Submission:
    """The run in a result directory, scored again, with what is required of it."""
    manifest, samples = read_run(folder)
    return Submission(folder, name, manifest, samples, scored_run(folder), required)


def _unreadable(error: Exception, folder: Path, name: str) -> SubmissionFinding:
    """The finding about a result directory that cannot be read."""
    observed = f"{type(error).__name__}: {error}".rstrip(".")
    unreadable = problem("LB102", name, observed, file=folder, submission=name)
    if isinstance(error, MedtasksError):
        # the message has what was expected, and the fix
        return replace(unreadable, message=str(error))
    return unreadable


def _ask_again(checked: _CheckedRun, submission: Submission, ask_again: AskAgain) -> None:
    """Add to ``checked`` how far a run's verdicts agree with those given now, with findings where
    they do not.
    """
    name = submission.name
    try:
        checked.rejudged = list(ask_again(scored_run(submission.folder, whole=True)))
    except MachineError:
        raise
    except MedtasksError as error:
        message = str(error).rstrip(".")
        checked.findings.append(submission.problem("LB214", name, message, submission=name))
        return
    for record in checked.rejudged:
        if not record.scores or record.equal < AGREEMENT * record.scores:
            observed = f"{record.rubric}: {record}"
            checked.findings.append(
                submission.problem("LB213", name, observed, "judge", submission=name)
            )

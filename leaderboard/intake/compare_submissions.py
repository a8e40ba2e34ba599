"""The check of runs beside each other: other data, models and responses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.core.text import first_names

from ..verify.conflicts import Conflicts, contradictions, same_responses
from ..verify.coverage import released_share
from ..verify.scored_run import ScoredRun
from .rules import MOST
from .submission_findings import SubmissionFinding, problem


@dataclass(frozen=True)
class _DataOfRun:
    """The run in ``folder``, and the share of a benchmark's release that it has."""

    share: float
    folder: Path


def compare_submissions(
    runs: Mapping[Path, ScoredRun], names: Mapping[Path, str]
) -> Iterator[SubmissionFinding]:
    """Findings that only a comparison of several submitted runs can make, in four groups:

    - LB209: a run uses other data of a benchmark than the rest.
    - LB211: a run would replace an older run of the same model. Submitters choose the model's name,
      so the two may be from different people.
    - LB212: a run has exactly the responses of another model.
    - LB215: two runs claim the same data, but have other questions or gold answers.

    Args:
        runs: the scored runs by directory.
        names: the name of each run's submission, by the same directories.
    """
    yield from _other_data(runs, names)
    yield from _newer_runs(runs, names)
    for pair in _conflicting_pairs(same_responses(runs.values()), runs):
        copied = names[pair.other_folder]
        observed = f"the responses of {pair.tasks} are those of {copied}, another model"
        yield _manifest_problem("LB212", pair.folder, names, observed)
    for pair in _conflicting_pairs(contradictions(runs.values()), runs):
        differing = names[pair.other_folder]
        observed = f"the documents of {pair.tasks} differ from those of {differing}"
        yield _manifest_problem("LB215", pair.folder, names, observed)


@dataclass(frozen=True)
class _ConflictingPair:
    """The directories of two runs that conflict, and the names of the tasks on which they do."""

    folder: Path
    other_folder: Path
    tasks: str


def _conflicting_pairs(
    conflicts: Conflicts, runs: Mapping[Path, ScoredRun]
) -> Iterator[_ConflictingPair]:
    """The pairs of runs that conflict, with their directories instead of their keys."""
    folders = {run.public.key: folder for folder, run in runs.items()}
    for key, tasks_by_other in conflicts.items():
        for other_key, tasks in tasks_by_other.items():
            yield _ConflictingPair(folders[key], folders[other_key], first_names(tasks, MOST))


def _manifest_problem(
    code: str, folder: Path, names: Mapping[Path, str], observed: str
) -> SubmissionFinding:
    """A finding about the run in ``folder``, whose manifest is the file."""
    name = names[folder]
    return problem(code, name, observed, file=folder / "manifest.json", submission=name)


def _other_data(
    runs: Mapping[Path, ScoredRun], names: Mapping[Path, str]
) -> Iterator[SubmissionFinding]:
    """A finding for each run whose data of a benchmark differ from the usual ones.

    The usual data are those with most of the release; of equally large ones, those of most runs.
    """
    by_data: dict[str, dict[str, list[_DataOfRun]]] = defaultdict(lambda: defaultdict(list))
    for folder, run in runs.items():
        for benchmark, fingerprint in run.public.data.items():
            share = _largest_share(run, benchmark)
            by_data[benchmark][fingerprint].append(_DataOfRun(share, folder))
    for benchmark, runs_by_fingerprint in sorted(by_data.items()):
        usual = _usual_fingerprint(runs_by_fingerprint)
        usual_runs = len(runs_by_fingerprint[usual])
        all_runs = sum(map(len, runs_by_fingerprint.values()))
        expected = f"{usual[:16]} as {usual_runs} of {all_runs} runs have"
        for fingerprint in sorted(runs_by_fingerprint.keys() - {usual}):
            for data in runs_by_fingerprint[fingerprint]:
                yield problem(
                    "LB209",
                    benchmark,
                    fingerprint[:16],
                    expected=expected,
                    file=data.folder / "manifest.json",
                    field=f"data.{benchmark}.fingerprint",
                    submission=names[data.folder],
                )


def _largest_share(run: ScoredRun, benchmark: str) -> float:
    """The largest share of the benchmark's release that a task or group of the run covers."""
    share = 0.0
    for entry in run.entries.values():
        if entry.benchmark == benchmark:
            share = max(share, released_share(entry))
    return share


def _usual_fingerprint(runs_by_fingerprint: Mapping[str, Sequence[_DataOfRun]]) -> str:
    """The data with most of the release; of equally large ones, those of most runs."""

    def preference(fingerprint: str) -> tuple[float, int, str]:
        runs = runs_by_fingerprint[fingerprint]
        largest_share = max(data.share for data in runs)
        return (-largest_share, -len(runs), fingerprint)

    return min(runs_by_fingerprint, key=preference)


def _newer_runs(
    runs: Mapping[Path, ScoredRun], names: Mapping[Path, str]
) -> Iterator[SubmissionFinding]:
    """A finding for each run that would replace an older, comparable run of the same model."""
    signatures = {folder: _signatures(run) for folder, run in runs.items()}
    for folder, run in runs.items():
        replaced = []
        for older_folder, older in runs.items():
            is_comparable = not signatures[older_folder].isdisjoint(signatures[folder])
            if is_comparable and _is_newer_run_of_model(run, older):
                replaced.append(names[older_folder])
        if replaced:
            named = first_names(sorted(replaced), MOST)
            observed = f"a newer run of the model of {named}, which it would replace"
            yield _manifest_problem("LB211", folder, names, observed)


def _signatures(run: ScoredRun) -> set[str]:
    """The signatures of all scores of the run."""
    signatures: set[str] = set()
    for entry in run.entries.values():
        signatures.update(entry.signatures.values())
    return signatures


def _is_newer_run_of_model(run: ScoredRun, older: ScoredRun) -> bool:
    """Whether ``run`` was created after ``older``, is of the same model, and is not a copy of it.

    Keys decide between runs created at the same time, as they do on a board.
    """
    if run.model != older.model or run.public.digest == older.public.digest:
        return False
    return (run.public.created, run.public.key) > (older.public.created, older.public.key)

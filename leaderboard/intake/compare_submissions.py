"""The check of runs beside each other: other data, models and responses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from medtasks.core.text import first_names

from ..verify.conflicts import contradictions, same_responses
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
    """Findings about runs, by directory, that do not go together; ``names`` are the submissions'.

    These are: runs on other data than those with most of the release, or than most runs; runs that
    would replace an older one of the same model (whoever submits a run chooses its model's name);
    runs with another model's responses; and runs that claim the same data, but have other questions
    or gold answers.
    """
    yield from _other_data(runs, names)
    yield from _newer_runs(runs, names)
    folders = {run.public.key: folder for folder, run in runs.items()}
    for key, copies in same_responses(runs.values()).items():
        for copied_key, tasks in copies.items():
            folder, copied = folders[key], names[folders[copied_key]]
            observed = (
                f"the responses of {first_names(tasks, MOST)} are those of {copied}, another model"
            )
            yield _manifest_problem("LB212", folder, names, observed)
    for key, contradicted in contradictions(runs.values()).items():
        for other_key, tasks in contradicted.items():
            folder, differing = folders[key], names[folders[other_key]]
            observed = (
                f"the documents of {first_names(tasks, MOST)} differ from those of {differing}"
            )
            yield _manifest_problem("LB215", folder, names, observed)


def _manifest_problem(
    code: str, folder: Path, names: Mapping[Path, str], observed: str
) -> SubmissionFinding:
    """A finding about the run in ``folder``, whose manifest is the file."""
    name = names[folder]
    return problem(code, name, observed, file=folder / "manifest.json", submission=name)


def _other_data(
    runs: Mapping[Path, ScoredRun], names: Mapping[Path, str]
) -> Iterator[SubmissionFinding]:
    """Findings about runs on other data than those with most of the release, or than most runs."""
    by_data: dict[str, dict[str, list[_DataOfRun]]] = defaultdict(lambda: defaultdict(list))
    for folder, run in runs.items():
        for benchmark, fingerprint in run.public.data.items():
            share = _largest_share(run, benchmark)
            by_data[benchmark][fingerprint].append(_DataOfRun(share, folder))
    for benchmark, runs_on in sorted(by_data.items()):
        usual = min(runs_on, key=lambda fingerprint: _unusual(fingerprint, runs_on[fingerprint]))
        total = sum(map(len, runs_on.values()))
        expected = f"{usual[:16]} as {len(runs_on[usual])} of {total} runs have"
        for fingerprint in sorted(runs_on.keys() - {usual}):
            for data in runs_on[fingerprint]:
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
    """The largest share of the release that an entry of the run has."""
    share = 0.0
    for entry in run.entries.values():
        if entry.benchmark == benchmark:
            share = max(share, released_share(entry))
    return share


def _unusual(fingerprint: str, runs: list[_DataOfRun]) -> tuple[float, int, str]:
    """A sort key: first the data with most of the release, then those of most runs."""
    largest = max(data.share for data in runs)
    return (-largest, -len(runs), fingerprint)


def _newer_runs(
    runs: Mapping[Path, ScoredRun], names: Mapping[Path, str]
) -> Iterator[SubmissionFinding]:
    """Findings about runs that would replace an older, comparable one of the same model."""
    signatures: dict[Path, set[str]] = {}
    for folder, run in runs.items():
        signatures[folder] = set()
        for entry in run.entries.values():
            signatures[folder].update(entry.signatures.values())
    for folder, run in runs.items():
        replaced = []
        for older_folder, older in runs.items():
            is_older = (older.public.created, older.public.key) < (
                run.public.created,
                run.public.key,
            )
            is_same_model = older.model == run.model and older.public.digest != run.public.digest
            if is_older and is_same_model and signatures[older_folder] & signatures[folder]:
                replaced.append(names[older_folder])
        if replaced:
            named = first_names(sorted(replaced), MOST)
            observed = f"a newer run of the model of {named}, which it would replace"
            yield _manifest_problem("LB211", folder, names, observed)

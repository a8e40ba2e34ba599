"""The check of submissions to a leaderboard's repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtasks.core.errors import MedtasksError
from medtasks.core.findings import Finding, failed
from medtasks.core.text import first_names
from medtasks.runs.record import read_run

from ..rank.comparability import released_share, same_responses
from ..verify.rejudging import AGREEMENT, Rejudged
from ..verify.scored_run import ScoredRun, scored_run
from .check_files import Patterns, check_beside, check_files, secret_patterns
from .check_rules import MOST, Asked, Submission, problem
from .check_run import check_learned, check_run
from .collect import Found, find_everything

COVERAGE = 0.95
"""Share of a release's records that must be prepared, by default."""


@dataclass(frozen=True)
class CheckReport:
    """The directories that were checked, the findings (`medtasks.core.findings` formats them), and how far verdicts
    agree with those that were asked again."""

    folders: tuple[str, ...]
    findings: tuple[Finding, ...]
    rejudged: tuple[Rejudged, ...] = ()

    def failed(self, strict: bool = False) -> bool:
        """Whether there is an error or, if ``strict``, a warning."""
        return failed(self.findings, strict)


def check_results(
    paths: Sequence[Path],
    *,
    coverage: float = COVERAGE,
    demonstration: bool = False,
    public: bool = True,
    rescore: bool = True,
    ask_again: Callable[[ScoredRun], Iterator[Rejudged]] | None = None,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Check the result directories in ``paths``; nothing is changed. ``docs/leaderboard.md`` lists what is checked.

    Args:
        coverage: the share of a release's records that must be prepared.
        demonstration: allow miniature data.
        public: whether the repository is public; if not, rows that must not be shared are a warning.
        rescore: compute learned metrics again (the slowest part).
        ask_again: asks a judge again about some of a run's verdicts (`medtasks.leaderboard.verify.rejudging.rejudge`).
        environment: variables whose secrets are searched for; by default this process's.

    Raises:
        UsageError: a path is not a directory.
    """
    asked = Asked(coverage=coverage, demonstration=demonstration, public=public)
    secrets = secret_patterns(os.environ if environment is None else environment)
    everything = find_everything(paths)
    folders = everything.folders
    findings = list(_around(paths, everything, secrets, asked))
    runs: dict[Path, ScoredRun] = {}
    rejudged: list[Rejudged] = []
    for number, folder in enumerate(folders):
        if progress is not None:
            progress(number, len(folders))
        run, found = _checked(folder, asked, rescore, secrets)
        findings += found
        if run is None:
            continue
        runs[folder] = run
        try:
            again = [] if ask_again is None else [*ask_again(scored_run(folder, whole=True))]
        except MedtasksError as error:
            findings.append(problem("LB214", folder.name, str(error).rstrip("."), file=folder / "manifest.json"))
            continue
        rejudged += again
        findings += [
            problem("LB213", folder.name, f"{one.rubric}: {one}", file=folder / "manifest.json", field="judge")
            for one in again
            if one.equal < AGREEMENT * one.scores or not one.scores
        ]
    findings += [*_other_data(runs), *_copies(runs)]
    if progress is not None:
        progress(len(folders), len(folders))
    return CheckReport(tuple(str(folder) for folder in folders), tuple(findings), tuple(rejudged))


def _checked(folder: Path, asked: Asked, rescore: bool, secrets: Patterns) -> tuple[ScoredRun | None, list[Finding]]:
    """The run (None if the directory cannot be read) and all findings; never raises."""
    try:
        manifest, samples = read_run(folder)
        run = Submission(folder, manifest, samples, scored_run(folder))
        found = [*check_run(run, asked), *(check_learned(run) if rescore else ())]
    except Exception as error:
        unreadable = problem("LB102", folder.name, f"{type(error).__name__}: {error}".rstrip("."), file=folder)
        if isinstance(error, MedtasksError):  # the message has what was expected, and the fix
            unreadable = replace(unreadable, message=str(error))
        tasks = [path.stem for path in (folder / "samples").glob("*.jsonl")]
        return None, [unreadable, *check_files(folder, tasks, secrets)]
    return run.scored, [*found, *check_files(folder, manifest.tasks, secrets)]


def _around(paths: Sequence[Path], everything: Found, secrets: Patterns, asked: Asked) -> Iterator[Finding]:
    """Findings about paths without a run, unreadable directories, and files beside the runs."""
    for path in dict.fromkeys(paths):
        inside = [folder for folder in everything.folders if folder.resolve().is_relative_to(path.resolve())]
        if not inside:
            yield problem("LB101", path.name, "it contains no result directory", file=path)
        yield from check_beside(path, inside, secrets, asked)
    for one in everything.unread:
        yield problem("LB104" if one.link else "LB102", one.path.name, one.found, fix=one.fix, file=one.path)


def _other_data(runs: Mapping[Path, ScoredRun]) -> Iterator[Finding]:
    """Runs on other data than those with most of the release, or that most runs have."""
    by_data: dict[str, dict[str, list[Path]]] = {}
    for folder, run in runs.items():
        for benchmark, fingerprint in run.public.data.items():
            by_data.setdefault(benchmark, {}).setdefault(fingerprint, []).append(folder)

    def share(benchmark: str, folders: Sequence[Path]) -> float:
        entries = [entry for folder in folders for entry in runs[folder].entries.values()]
        return max((released_share(entry) for entry in entries if entry.benchmark == benchmark), default=0.0)

    for benchmark, found in sorted(by_data.items()):
        usual = min(found, key=lambda one: (-share(benchmark, found[one]), -len(found[one]), one))
        expected = f"{usual[:16]} as {len(found[usual])} of {sum(map(len, found.values()))} runs have"
        for other in sorted(found.keys() - {usual}):
            for folder in found[other]:
                field, file = f"data.{benchmark}.fingerprint", folder / "manifest.json"
                yield problem("LB209", benchmark, other[:16], expected=expected, file=file, field=field)


def _copies(runs: Mapping[Path, ScoredRun]) -> Iterator[Finding]:
    """Runs that would replace an older one of the same model (whoever submits a run chooses its model's name), and runs
    whose responses are those of another model."""
    signatures = {
        folder: {signature for entry in run.entries.values() for signature in entry.signatures.values()}
        for folder, run in runs.items()
    }
    for folder, run in runs.items():
        older = [
            other.name
            for other, one in runs.items()
            if one.model == run.model
            and one.public.digest != run.public.digest
            and (one.public.created, one.public.key) < (run.public.created, run.public.key)
            and signatures[other] & signatures[folder]  # they are comparable
        ]
        if older:
            found = f"a newer run of the model of {first_names(sorted(older), MOST)}, which it would replace"
            yield problem("LB211", folder.name, found, file=folder / "manifest.json")
    folders = {run.public.key: folder for folder, run in runs.items()}
    for key, copies in same_responses(runs.values()).items():
        for other, tasks in copies.items():
            found = f"the responses of {first_names(tasks, MOST)} are those of {folders[other].name}, another model"
            yield problem("LB212", folders[key].name, found, file=folders[key] / "manifest.json")

"""The check of submissions to a leaderboard's repository."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from medtasks.errors import MedtasksError
from medtasks.results.folder import read_run
from medtasks.validation.findings import Finding, failed

from .check_files import check_beside, check_files, secret_values
from .check_rules import Submission, problem
from .check_run import Asked, check_run
from .check_together import check_together
from .check_verified import check_learned, check_verified
from .collect import find_everything, find_runs
from .digest import Digest
from .reading import digest_run

COVERAGE = 0.95
"""Share of a release's records that must be prepared, by default."""


@dataclass(frozen=True)
class CheckReport:
    """The directories that were checked, and the findings (`medtasks.validation.findings` formats them)."""

    folders: tuple[str, ...]
    findings: tuple[Finding, ...]

    def failed(self, strict: bool = False) -> bool:
        """Whether there is an error or, if ``strict``, a warning."""
        return failed(self.findings, strict)

    def as_json(self) -> str:
        """Directories and findings as JSON."""
        found = {"folders": list(self.folders), "findings": [asdict(one) for one in self.findings]}
        return json.dumps(found, indent=1)


def check_results(
    paths: Sequence[Path],
    *,
    coverage: float = COVERAGE,
    demonstration: bool = False,
    public: bool = True,
    rescore: bool = True,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Check the result directories in ``paths``; nothing is changed. ``docs/leaderboard.md`` lists what is checked.

    Args:
        paths: result directories, or directories that contain some.
        coverage: the share of a release's records that must be prepared.
        demonstration: allow miniature data.
        public: whether the repository is public; if not, rows that must not be shared are a warning.
        rescore: compute learned metrics again (the slowest part).
        environment: variables whose secrets are searched for; by default this process's.
        progress: called with the number of directories done, and of all.

    Raises:
        UsageError: a path is not a directory.
    """
    asked = Asked(coverage=coverage, demonstration=demonstration, public=public)
    secrets = secret_values(os.environ if environment is None else environment)
    folders = find_runs(paths)
    findings = list(_around(paths, folders, secrets, asked))
    runs: dict[Path, Digest] = {}
    for number, folder in enumerate(folders):
        if progress is not None:
            progress(number, len(folders))
        digest, found = _checked(folder, asked, rescore, secrets)
        findings += found
        if digest is not None:
            runs[folder] = digest
    findings += check_together(runs)
    if progress is not None:
        progress(len(folders), len(folders))
    return CheckReport(tuple(str(folder) for folder in folders), tuple(findings))


def _checked(
    folder: Path, asked: Asked, rescore: bool, secrets: Mapping[str, str]
) -> tuple[Digest | None, list[Finding]]:
    """The digest (None if the directory cannot be read) and all findings; never raises."""
    try:
        manifest, samples = read_run(folder)
        run = Submission(folder, manifest, samples, digest_run(folder))
        found = [*check_run(run, asked), *check_verified(run)]
        if rescore:
            found += check_learned(run)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(".")
        unreadable = problem("LB102", folder.name, text, "a run's directory", "restore it, or run again", file=folder)
        if isinstance(error, MedtasksError):  # the message has what was expected, and the fix
            unreadable = replace(unreadable, message=str(error))
        tasks = frozenset(path.stem for path in (folder / "samples").glob("*.jsonl"))
        return None, [unreadable, *check_files(folder, folder.name, tasks, secrets)]
    return run.digest, [*found, *check_files(folder, folder.name, frozenset(manifest.tasks), secrets)]


def _around(
    paths: Sequence[Path], folders: Sequence[Path], secrets: Mapping[str, str], asked: Asked
) -> Iterator[Finding]:
    """Findings about paths without a run, unreadable directories, and files beside the runs."""
    for path in dict.fromkeys(paths):
        inside = [folder for folder in folders if folder.resolve().is_relative_to(path.resolve())]
        if not inside:
            fix = "submit the directory …_medtasks that a run writes; `medtasks score --out` makes one of other logs"
            yield problem("LB101", path.name, "it contains no result directory", "at least one", fix, file=path)
        yield from check_beside(path, inside, secrets, asked)
    for one in find_everything(paths).unread:
        code = "LB104" if one.link else "LB102"
        yield problem(code, one.path.name, one.found, "a directory that can be read", one.fix, file=one.path)

"""The submission check of a leaderboard's repository: what is wrong with result folders, before anyone ranks them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from medtasks.errors import MedtasksError
from medtasks.results.folder import read_run
from medtasks.results.manifest import RunManifest
from medtasks.validation.findings import Finding
from medtasks.validation.report import failed

from .check_beside import check_beside
from .check_documents import check_documents
from .check_files import check_files, secret_values
from .check_rules import problem
from .check_run import Asked, check_run
from .check_scores import check_samples, check_scores
from .collect import find_runs, find_unread
from .reading import digest_run
from .releases import Releases
from .strip import is_stripped

__all__ = ["COVERAGE", "CheckReport", "check_results"]

COVERAGE = 0.95
"""Share of a release's records that must be prepared, by default."""


@dataclass(frozen=True)
class CheckReport:
    """Findings, the folders that were looked at first to last. `medtasks.validation.report` turns findings into table
    rows, JSON, SARIF and annotations."""

    folders: tuple[str, ...]
    findings: tuple[Finding, ...]

    def failed(self, strict: bool = False) -> bool:
        """Whether there is an error or, where ``strict``, a warning."""
        return failed(self.findings, strict)

    def as_json(self) -> str:
        """Folders and findings as JSON."""
        found = {"folders": list(self.folders), "findings": [asdict(one) for one in self.findings]}
        return json.dumps(found, indent=1)


def check_results(
    paths: Sequence[Path],
    *,
    coverage: float = COVERAGE,
    demonstration: bool = False,
    public: bool = True,
    rescore: bool = True,
    documents: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Check the result folders in ``paths``; nothing is changed.

    A folder is whole, readable, and holds a run's files alone, without links, keys or paths of a machine; all documents
    were asked, by today's task files, on the release (or most of it); judged benchmarks were judged; scores follow from
    samples, and samples from responses; documents are those of the data, prompts those of the templates; no prompt
    shows what it must hide; no sample holds what must not be shared.
    Beside the folders lie neither media, nor logs of lmms-eval without a run, nor links to runs, nor keys in any file
    (all is looked at but ``.git``).

    Args:
        paths: result folders, or folders that hold some.
        coverage: the share of a release's records that must be prepared.
        demonstration: allow miniature data.
        public: whether the repository can be read by all; else rows that must not be shared are only warned of.
        rescore: score all responses again (the slowest part).
        documents: files of document hashes, beside the data prepared here (`medtasks.leaderboard.releases`).
        environment: where keys are looked for; by default this process's.
        progress: told of folders done, and of all.

    Raises:
        UsageError: a path is not a directory.
        DataError: a file of document hashes cannot be read.
    """
    releases = Releases(documents)
    asked = Asked(coverage=coverage, demonstration=demonstration, public=public)
    secrets = secret_values(os.environ if environment is None else environment)
    folders = find_runs(paths)
    findings = list(_strays(paths, folders, secrets, asked))
    fingerprints: dict[str, dict[str, list[str]]] = {}
    for number, folder in enumerate(folders):
        if progress is not None:
            progress(number, len(folders))
        manifest, found = _checked(folder, asked, rescore, secrets, releases)
        findings += found
        for name, facts in manifest.data.items() if manifest is not None else ():
            fingerprints.setdefault(name, {}).setdefault(facts.fingerprint, []).append(str(folder))
    findings += _others(fingerprints)
    if progress is not None:
        progress(len(folders), len(folders))
    return CheckReport(tuple(str(folder) for folder in folders), tuple(findings))


def _checked(
    folder: Path, asked: Asked, rescore: bool, secrets: Mapping[str, str], releases: Releases
) -> tuple[RunManifest | None, list[Finding]]:
    """The manifest of a folder that could be read, and all findings about it; whatever it holds, others go on."""
    try:
        manifest, samples = read_run(folder)
        digest = digest_run(folder)
        found = [
            *check_run(folder, manifest, samples, digest, asked),
            *check_documents(folder, manifest, samples, digest, releases),
            *check_scores(folder, manifest, digest),
        ]
        if rescore:
            again = [name for name in manifest.tasks if name in digest.entries and not is_stripped(samples[name])]
            found += check_samples(folder, manifest, samples, again)
    except Exception as error:
        told = str(error) if isinstance(error, MedtasksError) else f"{type(error).__name__}: {error}"
        found = [
            problem("LB102", folder.name, told.rstrip("."), "a run's folder", "restore it, or run again", file=folder)
        ]
        return None, [*found, *check_files(folder, folder.name, _named(folder), secrets)]
    return manifest, [*found, *check_files(folder, folder.name, frozenset(manifest.tasks), secrets)]


def _named(folder: Path) -> frozenset[str]:
    """Of a folder that cannot be read, the tasks that its files claim."""
    return frozenset(path.stem for path in (folder / "samples").glob("*.jsonl"))


def _strays(
    paths: Sequence[Path], folders: Sequence[Path], secrets: Mapping[str, str], asked: Asked
) -> Iterator[Finding]:
    """Paths without a run, what could not be looked into, and what lies beside the runs."""
    for path in dict.fromkeys(paths):
        inside = [folder for folder in folders if folder.resolve().is_relative_to(path.resolve())]
        if not inside:
            fix = "submit the folder …_medtasks that a run writes; other logs become one with `medtasks score --out`"
            yield problem("LB101", path.name, "there is no result folder in it", "at least one", fix, file=path)
        yield from check_beside(path, inside, secrets, asked)
    for one in find_unread(paths):
        code = "LB104" if one.link else "LB102"
        yield problem(code, one.path.name, one.found, "a folder that can be read", one.fix, file=one.path)


def _others(fingerprints: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[Finding]:
    """Runs on other data than most: they will share no ranking."""
    for name, folders in sorted(fingerprints.items()):
        counts = Counter({fingerprint: len(found) for fingerprint, found in folders.items()})
        most = min(counts, key=lambda one: (-counts[one], one))
        for fingerprint, found in sorted(folders.items()):
            for folder in found if fingerprint != most else ():
                told, wanted = fingerprint[:16], f"{most[:16]} as {counts[most]} of {sum(counts.values())} runs have"
                fix, path = "prepare the same release, or it stands apart", Path(folder) / "manifest.json"
                yield problem("LB209", name, told, wanted, fix, file=path, field=f"data.{name}.fingerprint")

"""The files in and beside submitted results: no other files, media, secrets or local paths."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtasks.catalog.spec import load_specs
from medtasks.core.findings import Severity
from medtasks.core.redaction import SECRETS
from medtasks.core.text import counted
from medtasks.runs.find import name_below
from medtasks.runs.times import TIMES
from medtasks.runs.unfinished import SUFFIX as UNFINISHED
from medtasks.scoring.latency import LATENCY

from .collect import LOG, MAKE_A_RUN
from .rules import MOST
from .shown_layouts import is_withheld
from .submission_findings import SubmissionFinding, problem

Patterns = Mapping[str, re.Pattern[str]]

_VARIABLE = re.compile(r"_(API_KEY|TOKEN|SECRET|ACCESS_KEY|PASSWORD)$")
_SHORTEST = 8
"""Minimum length of the values that are searched for."""
_PATH = re.compile(
    r"""(?:^|(?<=[\s=,;"'(\[]))(?:~?/[\w.@+-]+/[^\s,;"')\]]*|~/[^\s,;"')\]]+"""
    r"""|[A-Za-z]:[\\/][^\s,;"')\]]+|file://[^\s,;"')]+)"""
)
_OURS = ("sample_id", "cluster", "media", "task")
"""The fields of a sample that its machine writes; the others come from the release or the model."""
_MEDIA = {
    *(".avi", ".bmp", ".dcm", ".gif", ".gz", ".jpeg", ".jpg", ".mkv", ".mov", ".mp4"),
    *(".nii", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp"),
}
_LOGS = re.compile(r".*_(?:samples_.+\.jsonl|results\.json)", re.I)
"""Files of lmms-eval beside a run's directory: whole documents, and the full command."""
_REPLIES = re.compile(r"(?P<task>.+)\.rank\d+\.jsonl")


def secret_patterns(environment: Mapping[str, str] = os.environ) -> dict[str, re.Pattern[str]]:
    """What secrets look like, by kind, and the values of secret variables of the environment."""
    patterns = dict(SECRETS)
    for name, value in sorted(environment.items()):
        secret = value.strip()
        if _VARIABLE.search(name) and len(secret) >= _SHORTEST:
            patterns[f"the value of ${name}"] = re.compile(re.escape(secret))
    return patterns


@dataclass(frozen=True)
class SubmittedRun:
    """A run's name, and the tasks that its manifest names."""

    name: str
    tasks: Collection[str]


@dataclass(frozen=True)
class _File:
    """A file below ``root``, one of the given paths, and the directory of the run that it is in.

    ``place`` is its path with links resolved, except for a link that it is itself.
    """

    path: Path
    place: Path
    root: Path
    folder: Path | None


@dataclass
class _BesideRuns:
    """What was seen of the files beside runs, on which findings come at the end.

    ``logs`` are by directory the first log without a run, ``withheld`` by directory and benchmark
    the files with prompts that must not be shared.
    """

    logs: dict[Path, Path] = field(default_factory=dict)
    withheld: dict[tuple[Path, str], list[Path]] = field(default_factory=dict)


def check_files(
    paths: Sequence[Path],
    runs: Mapping[Path, SubmittedRun],
    secrets: Patterns,
    *,
    public: bool,
    demonstration: bool,
) -> Iterator[SubmissionFinding]:
    """Findings about the files of ``runs`` (by resolved directory), and about those beside them.

    Logs and unfinished runs may stay beside runs, unless they have rows that must not be shared.
    """
    beside = _BesideRuns()
    for file in _files_below(paths, runs):
        if file.folder is not None:
            run = runs[file.folder]
            where = run.name
            yield from _in_run(file, file.folder, run)
        else:
            where = file.root.resolve().name
            yield from _beside_runs(file, where, runs, beside)
        if file.folder is not None or not file.path.is_symlink():
            yield from _texts_in(file.path, where, secrets)
    for folder, log in beside.logs.items():
        yield _log_without_run(log, name_below(folder, paths))
    if not demonstration:
        severity: Severity = "error" if public else "warning"
        for (folder, benchmark), files in beside.withheld.items():
            yield _withheld_prompts(files, benchmark, name_below(folder, paths), severity)


def _log_without_run(log: Path, where: str) -> SubmissionFinding:
    """The finding about a log of lmms-eval without a run beside it."""
    return problem(
        "LB103",
        where,
        f"{log.name} is there without a result directory",
        expected="a run beside it",
        fix=f"remove it, or {MAKE_A_RUN}",
        file=log,
    )


def _withheld_prompts(
    files: Sequence[Path], benchmark: str, where: str, severity: Severity
) -> SubmissionFinding:
    """The finding about files of one directory with prompts that must not be shared."""
    number = counted(len(files), "file")
    return problem(
        "LB304",
        where,
        f"beside the results: {number} with prompts of {benchmark} ({files[0].name})",
        expected="nothing that must not be shared",
        fix="remove this, or keep the repository private",
        severity=severity,
        file=files[0],
    )


def _beside_runs(
    file: _File, where: str, runs: Mapping[Path, SubmittedRun], beside: _BesideRuns
) -> Iterator[SubmissionFinding]:
    """The finding about media beside runs; logs and replies are added to ``beside``."""
    if file.path.suffix.lower() in _MEDIA:
        yield problem(
            "LB103",
            where,
            f"{file.path.name} is beside the results",
            expected="no media",
            fix="remove it",
            file=file.path,
        )
        return
    # logs and replies have prompts, logs also references
    parent = file.place.parent
    has_run = any(folder.parent == parent for folder in runs)
    if _LOGS.fullmatch(file.path.name) and not has_run:
        beside.logs.setdefault(parent, file.path)
    benchmark = _logged_benchmark(file.path)
    if benchmark is not None and is_withheld(benchmark):
        beside.withheld.setdefault((file.path.parent, benchmark), []).append(file.path)


def _files_below(paths: Sequence[Path], runs: Mapping[Path, SubmittedRun]) -> Iterator[_File]:
    """All files and links below the paths, each once; not those of Git beside runs."""
    files: dict[Path, tuple[Path, Path]] = {}
    for root in paths:
        for path in sorted(root.rglob("*")):
            files[path.parent.resolve() / path.name] = (root, path)
    for place, (root, path) in files.items():
        if path.is_dir() and not path.is_symlink():
            continue
        folder = next((parent for parent in place.parents if parent in runs), None)
        if folder is None and ".git" in path.relative_to(root).parts:
            continue
        yield _File(path, place, root, folder)


def _in_run(file: _File, folder: Path, run: SubmittedRun) -> Iterator[SubmissionFinding]:
    """The finding about a file that is a link, or that does not belong in a run."""
    name = file.place.relative_to(folder).as_posix()
    if file.path.is_symlink():
        yield problem("LB104", run.name, f"{name} is a link", file=file.path)
        return
    expected = {"manifest.json", "scores.json", LATENCY}
    for task in run.tasks:
        expected |= {f"samples/{task}.jsonl", f"{TIMES}/{task}.jsonl"}
    if name not in expected:
        kind = f"a {file.path.suffix} file" if file.path.suffix else "a file"
        size = file.path.stat().st_size
        yield problem("LB103", run.name, f"{name} is {kind} of {size:,} bytes", file=file.path)


def _logged_benchmark(file: Path) -> str | None:
    """The benchmark of the task whose log or whose unfinished run's replies the file has."""
    match = LOG.fullmatch(file.name)
    if match is None and file.parent.name.endswith(UNFINISHED):
        match = _REPLIES.fullmatch(file.name)
    if match is None:
        return None
    spec = load_specs().get(match["task"])
    return None if spec is None else spec.metadata.benchmark


def _texts_in(path: Path, where: str, secrets: Patterns) -> Iterator[SubmissionFinding]:
    """Findings about secrets in a file, and about local paths in what its machine wrote."""
    if not path.is_file():
        return
    counts: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                for finding in _line_findings(line, where, path, number, secrets):
                    counts[finding.code] += 1
                    if counts[finding.code] <= MOST:
                        yield finding
        if path.name == "manifest.json":
            text = path.read_text(encoding="utf-8", errors="replace")
            yield from _local_paths(text, where, path)
    except OSError as error:
        yield problem(
            "LB102",
            where,
            f"{path.name} cannot be read ({error.strerror})",
            fix="restore it, or remove it",
            file=path,
        )


def _line_findings(
    line: str, where: str, path: Path, number: int, secrets: Patterns
) -> Iterator[SubmissionFinding]:
    """Findings about the secrets in a line of a file and, in samples, about local paths."""
    for kind, pattern in secrets.items():
        for match in pattern.finditer(line):
            secret = match[0]
            masked = f"{kind} ({secret[:4]}…, {len(secret)} characters)"
            yield problem("LB301", where, masked, file=path, line=number)
    if path.suffix == ".jsonl":
        yield from _local_paths(line, where, path, number)


def _local_paths(
    text: str, where: str, path: Path, line: int | None = None
) -> Iterator[SubmissionFinding]:
    """Findings about the paths of one machine in JSON: a manifest or, with ``line``, a sample."""
    try:
        content = json.loads(text)
        if line is not None and isinstance(content, dict):
            content = {key: content[key] for key in _OURS if key in content}
        texts = list(_texts_of(content))
    except (ValueError, RecursionError):
        return  # reported when the directory is read
    for name, value in texts:
        for match in _PATH.finditer(value):
            observed = f"the path {match[0][:60]!r}"
            yield problem("LB302", where, observed, file=path, line=line, field=name)


def _texts_of(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, keys included, each with its field."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, list):
        for element in value:
            yield from _texts_of(element, field)
    elif isinstance(value, dict):
        for key, element in value.items():
            yield field, key
            yield from _texts_of(element, f"{field}.{key}".removeprefix("."))

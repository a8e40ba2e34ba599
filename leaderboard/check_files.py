"""Checks of the files in and beside result directories: no other files, media, secrets or local paths."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medtasks.results.answers import SUFFIX as UNFINISHED
from medtasks.spec import load_specs
from medtasks.validation.findings import Finding, Severity

from .check_rules import MOST, problem
from .check_run import Asked
from .redaction import SECRETS
from .strip import is_withheld

_VARIABLE = re.compile(r"_(API_KEY|TOKEN|SECRET|ACCESS_KEY|PASSWORD)$")
_SHORTEST = 8
"""Minimum length of the values that are searched for."""

_PATH = re.compile(
    r"""(?:^|(?<=[\s=,;"'(\[]))(?:~?/[\w.@+-]+/[^\s,;"')\]]*|~/[^\s,;"')\]]+|[A-Za-z]:[\\/][^\s,;"')\]]+|file://[^\s,;"')]+)"""
)
_OURS = ("sample_id", "cluster", "media", "task")
"""The fields of a sample that its machine writes; the others come from the release or the model."""

_MEDIA = {
    *(".avi", ".bmp", ".dcm", ".gif", ".gz", ".jpeg", ".jpg", ".mkv", ".mov", ".mp4"),
    *(".nii", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp"),
}
_LOG = re.compile(r".*_(?:samples_(?P<task>.+)\.jsonl|results\.json)", re.I)
"""Files of lmms-eval beside a run's directory: whole documents, and the full command."""
_REPLIES = re.compile(r"(?P<task>.+)\.rank\d+\.jsonl")


def secret_values(environment: Mapping[str, str]) -> dict[str, str]:
    """Values of the variables that hold keys and tokens, by name."""
    return {
        name: value.strip()
        for name, value in sorted(environment.items())
        if _VARIABLE.search(name) and len(value.strip()) >= _SHORTEST
    }


def check_files(folder: Path, where: str, tasks: frozenset[str], secrets: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about the files of a run's directory, whose manifest names ``tasks``."""
    expected = {"manifest.json", "scores.json", *(f"samples/{task}.jsonl" for task in tasks)}
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            yield problem("LB104", where, f"{name} is a link", "a file", "copy what it points to", file=path)
        elif name not in expected:
            kind = f"a {path.suffix} file" if path.suffix else "a file"
            found = f"{name} is {kind} of {path.stat().st_size:,} bytes"
            allowed = "only manifest.json, scores.json and samples/<task>.jsonl"
            yield problem("LB103", where, found, allowed, "remove it; results never include media", file=path)
        yield from _text(path, where, secrets)
    if not (folder / "scores.json").is_file():
        missing = "scores.json is missing"
        yield problem("LB102", where, missing, "the scores of the run", "restore it, or run `medtasks score`")


def _files(folder: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(folder):
        names.sort()
        links = [name for name in names if (Path(directory) / name).is_symlink()]
        yield from (Path(directory) / name for name in sorted((*files, *links)))


def _text(path: Path, where: str, secrets: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about secrets in any file, and local paths in a run's files."""
    if not path.is_file():
        return
    counts: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                places = _in_sample(line) if path.suffix == ".jsonl" else ()
                for one in (*_keys(line, where, path, number, secrets), *_paths(places, where, path, number)):
                    counts[one.code] += 1
                    if counts[one.code] <= MOST:
                        yield one
    except OSError as error:
        text = f"{path.name} cannot be read ({error.strerror})"
        yield problem("LB102", where, text, "a file that can be read", "restore it, or remove it", file=path)
    if path.name == "manifest.json":
        yield from _paths(_in_manifest(path), where, path, None)


def _in_sample(line: str) -> Iterator[tuple[str, str]]:
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError):
        return  # reported when the directory is read
    if isinstance(sample, dict):
        yield from _texts({key: sample[key] for key in _OURS if key in sample})


def _in_manifest(path: Path) -> Iterator[tuple[str, str]]:
    try:
        yield from _texts(json.loads(path.read_text(encoding="utf-8", errors="replace")))
    except (OSError, ValueError, RecursionError):
        return


def _texts(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, including keys, with its field."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for key, one in value.items():
            inner = f"{field}.{key}" if field else str(key)
            yield field, str(key)
            yield from _texts(one, inner)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, field)


def _keys(line: str, where: str, path: Path, number: int, secrets: Mapping[str, str]) -> Iterator[Finding]:
    fix = "remove it everywhere, revoke it, and run again with the key in an environment variable"
    for kind, pattern in SECRETS.items():
        for found in pattern.finditer(line):
            text = f"{kind} ({_masked(found[0])})"
            yield problem("LB301", where, text, "no secret in any file", fix, file=path, line=number)
    for name, value in secrets.items():
        if value in line:
            text = f"the value of ${name}"
            yield problem("LB301", where, text, "no secret in any file", fix, file=path, line=number)


def _masked(secret: str) -> str:
    return f"{secret[:4]}…, {len(secret)} characters"


def _paths(places: Iterable[tuple[str, str]], where: str, path: Path, number: int | None) -> Iterator[Finding]:
    for field, value in places:
        for found in _PATH.finditer(value):
            text = f"the path {found[0][:60]!r}"
            fix = "replace it with a name that makes sense on other machines"
            yield problem("LB302", where, text, "no path of one machine", fix, file=path, line=number, field=field)


def check_beside(path: Path, folders: Sequence[Path], secrets: Mapping[str, str], asked: Asked) -> Iterator[Finding]:
    """Findings about the files in ``path`` that do not belong to its runs' ``folders``.

    Files of lmms-eval beside a run, and those of unfinished runs, are a note, unless they have rows that must not be
    shared.
    """
    runs = {folder.resolve() for folder in folders}
    beside_runs = {folder.parent for folder in runs}
    passed: dict[Path, list[Path]] = {}
    held: dict[tuple[Path, str], list[Path]] = {}
    for file in _files_beside(path, runs):
        text = f"{file.name} is beside the results"
        log, unfinished = _LOG.fullmatch(file.name), file.parent.name.endswith(UNFINISHED)
        if file.suffix.lower() in _MEDIA:
            yield problem("LB103", path.name, text, "no media", "remove it", file=file)
        elif log is not None and file.resolve().parent not in beside_runs:
            fix = "remove it, or make it a run: `medtasks score LOG --from lmms-eval --out NEW_DIR`"
            yield problem("LB103", path.name, text, "a result directory beside it", fix, file=file)
        elif log is not None or unfinished:
            passed.setdefault(file.parent, []).append(file)
        benchmark = _withheld(log or (_REPLIES.fullmatch(file.name) if unfinished else None))
        if benchmark and not asked.demonstration:
            held.setdefault((file.parent, benchmark), []).append(file)
        if not file.is_symlink():
            yield from _text(file, path.name, secrets)
    for folder, files in passed.items():
        kind = "of a run that was not finished" if folder.name.endswith(UNFINISHED) else "of lmms-eval itself"
        text, fix = f"{len(files):,} files {kind} are beside the results", "they may stay: they are not read"
        yield problem("LB103", path.name, text, "only result directories", fix, file=folder, severity="note")

    for (_, benchmark), files in held.items():
        severity: Severity | None = None if asked.public else "warning"
        text = f"{len(files):,} files beside the results have prompts of {benchmark} ({files[0].name})"
        expected, fix = "nothing that must not be shared", "remove them, or keep the repository private"
        yield problem("LB304", path.name, text, expected, fix, file=files[0], severity=severity)


def _withheld(named: re.Match[str] | None) -> str:
    """The benchmark of a log or of replies if it must not be shared; both have prompts, logs also references."""
    spec = load_specs().get(named["task"]) if named is not None and named["task"] else None
    benchmark = "" if spec is None else spec.metadata.benchmark
    return benchmark if benchmark and is_withheld(benchmark) else ""


def _files_beside(path: Path, runs: set[Path]) -> Iterator[Path]:
    for directory, names, files in os.walk(path):
        current = Path(directory)
        if current.resolve() in runs:
            names.clear()
            continue
        names[:] = sorted(name for name in names if name != ".git")
        yield from (current / name for name in sorted(files))

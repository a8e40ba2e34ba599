"""Checks of the files in and beside result directories: no other files, media, secrets or local paths."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from medtasks.catalog.spec import load_specs
from medtasks.core.findings import Finding, Severity
from medtasks.core.redaction import SECRETS
from medtasks.core.text import counted
from medtasks.runs.run import SUFFIX as UNFINISHED

from .check_rules import MOST, Asked, problem
from .remove_rows import is_withheld

Patterns = Mapping[str, re.Pattern[str]]

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


def secret_patterns(environment: Mapping[str, str]) -> Patterns:
    """Patterns of keys and tokens by kind, and of the values that such variables have here."""
    values = {
        f"the value of ${name}": re.compile(re.escape(value.strip()))
        for name, value in sorted(environment.items())
        if _VARIABLE.search(name) and len(value.strip()) >= _SHORTEST
    }
    return {**SECRETS, **values}


def check_files(folder: Path, tasks: Collection[str], secrets: Patterns) -> Iterator[Finding]:
    """Findings about the files of a run's directory, whose manifest names ``tasks``."""
    where = folder.name
    expected = {"manifest.json", "scores.json", *(f"samples/{task}.jsonl" for task in tasks)}
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            yield problem("LB104", where, f"{name} is a link", file=path)
        elif name not in expected:
            kind = f"a {path.suffix} file" if path.suffix else "a file"
            yield problem("LB103", where, f"{name} is {kind} of {path.stat().st_size:,} bytes", file=path)
        yield from _texts_in(path, where, secrets)
    if not (folder / "scores.json").is_file():
        missing, fix = "scores.json is missing", "restore it, or run `medtasks score`"
        yield problem("LB102", where, missing, expected="the scores of the run", fix=fix)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]


def _texts_in(path: Path, where: str, secrets: Patterns) -> Iterator[Finding]:
    """Findings about secrets in any file, and local paths in a run's files."""
    if not path.is_file():
        return
    counts: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                found = [(kind, match[0]) for kind, of in secrets.items() for match in of.finditer(line)]
                masked = [f"{kind} ({text[:4]}…, {len(text)} characters)" for kind, text in found]
                findings = [problem("LB301", where, text, file=path, line=number) for text in masked]
                findings += _paths(line, where, path, number) if path.suffix == ".jsonl" else ()
                for one in findings:
                    counts[one.code] += 1
                    if counts[one.code] <= MOST:
                        yield one
        if path.name == "manifest.json":
            yield from _paths(path.read_text(encoding="utf-8", errors="replace"), where, path)
    except OSError as error:
        text, fix = f"{path.name} cannot be read ({error.strerror})", "restore it, or remove it"
        yield problem("LB102", where, text, fix=fix, file=path)


def _paths(text: str, where: str, path: Path, line: int | None = None) -> Iterator[Finding]:
    """Paths of one machine in a manifest, or in what a machine writes of a sample."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return  # reported when the directory is read
    if line is not None:
        content = {key: content[key] for key in _OURS if key in content} if isinstance(content, dict) else None
    for field, value in _strings(content):
        for found in _PATH.finditer(value):
            yield problem("LB302", where, f"the path {found[0][:60]!r}", file=path, line=line, field=field)


def _strings(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, including keys, with its field."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield field, str(key)
            yield from _strings(one, f"{field}.{key}" if field else str(key))
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one, field)


def check_beside(path: Path, folders: Collection[Path], secrets: Patterns, asked: Asked) -> Iterator[Finding]:
    """Findings about the files in ``path`` that do not belong to its runs' ``folders``.

    Files of lmms-eval beside a run, and those of unfinished runs, are a note, unless they have rows that must not be
    shared.
    """
    runs = {folder.resolve() for folder in folders}
    passed: dict[Path, list[Path]] = {}
    held: dict[tuple[Path, str], list[Path]] = {}
    for file in _files(path):
        place = file.parent.resolve()
        if ".git" in file.relative_to(path).parts or runs & {place, *place.parents}:
            continue
        text = f"{file.name} is beside the results"
        log, unfinished = _LOG.fullmatch(file.name), file.parent.name.endswith(UNFINISHED)
        if file.suffix.lower() in _MEDIA:
            yield problem("LB103", path.name, text, expected="no media", fix="remove it", file=file)
        elif log is not None and place not in {folder.parent for folder in runs}:
            fix = "remove it, or make it a run: `medtasks score LOG --from lmms-eval --out NEW_DIR`"
            yield problem("LB103", path.name, text, expected="a result directory beside it", fix=fix, file=file)
        elif log is not None or unfinished:
            passed.setdefault(file.parent, []).append(file)
        # both have prompts, logs also references
        named = log or (_REPLIES.fullmatch(file.name) if unfinished else None)
        spec = load_specs().get(named["task"] or "") if named is not None else None
        if spec is not None and is_withheld(spec.metadata.benchmark) and not asked.demonstration:
            held.setdefault((file.parent, spec.metadata.benchmark), []).append(file)
        if not file.is_symlink():
            yield from _texts_in(file, path.name, secrets)
    for folder, files in passed.items():
        kind = "of a run that was not finished" if folder.name.endswith(UNFINISHED) else "of lmms-eval itself"
        text, fix = f"beside the results: {counted(len(files), 'file')} {kind}", "this may stay: it is not read"
        yield problem("LB103", path.name, text, expected="only results", fix=fix, file=folder, severity="note")
    for (_, benchmark), files in held.items():
        text = f"beside the results: {counted(len(files), 'file')} with prompts of {benchmark} ({files[0].name})"
        expected, fix = "nothing that must not be shared", "remove this, or keep the repository private"
        severity: Severity | None = None if asked.public else "warning"
        yield problem("LB304", path.name, text, expected=expected, fix=fix, file=files[0], severity=severity)

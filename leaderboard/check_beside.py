"""What lies beside the result folders of a submission: lmms-eval's own files and unfinished runs pass, media and keys
do not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from medtasks.results.answers import SUFFIX as UNFINISHED
from medtasks.spec import load_specs
from medtasks.validation.findings import Finding, Severity

from .check_files import check_text
from .check_rules import problem
from .check_run import Asked
from .strip import is_withheld

__all__ = ["check_beside"]

_MEDIA = {
    *(".avi", ".bmp", ".dcm", ".gif", ".gz", ".jpeg", ".jpg", ".mkv", ".mov", ".mp4"),
    *(".nii", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp"),
}
_LOG = re.compile(r".*_(?:samples_(?P<task>.+)\.jsonl|results\.json)", re.I)
"""What lmms-eval itself writes beside a run's folder: whole documents, and the command with all its arguments."""
_REPLIES = re.compile(r"(?P<task>.+)\.rank\d+\.jsonl")


def check_beside(path: Path, folders: Sequence[Path], secrets: Mapping[str, str], asked: Asked) -> Iterator[Finding]:
    """Findings about the files in ``path`` that are in none of its runs' ``folders``.

    Where a run lies beside them, files of lmms-eval and of unfinished runs are only noted, unless they hold rows that
    must not be shared.
    """
    runs = {folder.resolve() for folder in folders}
    beside_runs = {folder.parent for folder in runs}
    passed: dict[Path, list[Path]] = {}
    held: dict[tuple[Path, str], list[Path]] = {}
    for file in _files(path, runs):
        told = f"{file.name} lies beside the results"
        log, unfinished = _LOG.fullmatch(file.name), file.parent.name.endswith(UNFINISHED)
        if file.suffix.lower() in _MEDIA:
            yield problem("LB103", path.name, told, "no media", "remove it", file=file)
        elif log is not None and file.resolve().parent not in beside_runs:
            fix = "remove it; a log becomes a run with `medtasks score LOG --from lmms-eval --out NEW_FOLDER`"
            yield problem("LB103", path.name, told, "a result folder beside it", fix, file=file)
        elif log is not None or unfinished:
            passed.setdefault(file.parent, []).append(file)
        benchmark = _withheld(log or (_REPLIES.fullmatch(file.name) if unfinished else None))
        if benchmark and not asked.demonstration:
            held.setdefault((file.parent, benchmark), []).append(file)
        if not file.is_symlink():
            yield from check_text(file, path.name, secrets)
    for folder, files in passed.items():
        whose = "of a run that was not finished" if folder.name.endswith(UNFINISHED) else "of lmms-eval itself"
        told, fix = f"{len(files):,} files {whose} lie beside the results", "they may stay: nothing is read from them"
        yield problem("LB103", path.name, told, "result folders alone", fix, file=folder, severity="note")

    for (_, benchmark), files in held.items():
        severity: Severity | None = None if asked.public else "warning"
        told = f"{len(files):,} files beside the results hold prompts of {benchmark} ({files[0].name})"
        wanted, fix = "nothing that must not be shared", "remove them, or keep the repository private"
        yield problem("LB304", path.name, told, wanted, fix, file=files[0], severity=severity)


def _withheld(named: re.Match[str] | None) -> str:
    """The benchmark of a log or of replies, where these must not be shared: they hold prompts, logs references, too."""
    spec = load_specs().get(named["task"]) if named is not None and named["task"] else None
    benchmark = "" if spec is None else spec.metadata.benchmark
    return benchmark if benchmark and is_withheld(benchmark) else ""


def _files(path: Path, runs: Set[Path]) -> Iterator[Path]:
    for directory, names, files in os.walk(path):
        here = Path(directory)
        if here.resolve() in runs:
            names.clear()
            continue
        names[:] = sorted(name for name in names if name != ".git")
        yield from (here / name for name in sorted(files))

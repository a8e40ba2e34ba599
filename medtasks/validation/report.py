"""Findings as rows of a table, and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from medtasks.text import one_line
from medtasks.validation.findings import Finding

COLUMNS = ("severity", "code", "where", "place", "message")
"""Headings of :func:`as_rows`."""

_WORST_FIRST = ("error", "warning", "note")


def failed(findings: Sequence[Finding], strict: bool = False) -> bool:
    """Whether there is an error or, if ``strict``, a warning."""
    return any(one.severity == "error" or (strict and one.severity == "warning") for one in findings)


def summary(findings: Sequence[Finding]) -> str:
    """The number of findings of each severity, on one line."""
    counts = Counter[str](one.severity for one in findings)
    return ", ".join(f"{counts[name]:,} {name}{'' if counts[name] == 1 else 's'}" for name in _WORST_FIRST)


def as_rows(findings: Sequence[Finding]) -> list[tuple[str, str, str, str, str]]:
    """Rows of a table, errors first; files below the current directory relative to it."""
    ordered = sorted(findings, key=lambda one: _WORST_FIRST.index(one.severity))
    return [(one.severity, one.code, one_line(one.where), _place(one), one_line(one.message)) for one in ordered]


def _place(finding: Finding) -> str:
    file = (_relative(finding.file) or finding.file) if finding.file else ""
    return one_line(f"{file}:{finding.line}" if finding.line else file)


def _relative(file: str) -> str:
    """``file`` relative to the current directory; empty if it is elsewhere."""
    try:
        return Path(file).resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (OSError, ValueError, RuntimeError):
        return ""

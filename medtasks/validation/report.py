"""Output formats of findings: table rows, SARIF 2.1.0, GitHub workflow annotations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from medtasks import __version__
from medtasks.text import one_line
from medtasks.validation.findings import RULES, Finding

COLUMNS = ("severity", "code", "where", "place", "message")
"""Headings of :func:`as_rows`."""

_ANNOTATION = {"error": "error", "warning": "warning", "note": "notice"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
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


def as_sarif(findings: Sequence[Finding]) -> str:
    """A SARIF 2.1.0 log of one run, with the rules that were broken.

    Files below the current directory are named relative to it, as code hosts expect.
    """
    codes = [code for code in RULES if any(one.code == code for one in findings)]
    rules = [
        {
            "id": code,
            "shortDescription": {"text": RULES[code].title},
            "defaultConfiguration": {"level": RULES[code].severity},
        }
        for code in codes
    ]
    driver = {"name": "medtasks", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, codes) for one in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(finding: Finding, codes: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {"level": finding.severity, "message": {"text": finding.message or finding.check}}
    if finding.code in codes:
        result |= {"ruleId": finding.code, "ruleIndex": codes.index(finding.code)}
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": ": ".join(filter(None, (finding.where, finding.field)))}]
    }
    if finding.file:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file)}}
        if finding.line:
            physical["region"] = {"startLine": finding.line}
        location["physicalLocation"] = physical
    return {**result, "locations": [location]}


def as_annotations(findings: Sequence[Finding]) -> str:
    """GitHub workflow commands, one per line."""
    return "\n".join(map(_annotation, findings))


def _annotation(finding: Finding) -> str:
    properties = {"title": f"{finding.code} {finding.check}".strip()}
    if finding.file:
        properties = {"file": _relative(finding.file) or finding.file, **properties}
    if finding.file and finding.line:
        properties["line"] = str(finding.line)
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    text = f"{finding.where}: {finding.message}" if finding.where else finding.message
    return f"::{_ANNOTATION[finding.severity]} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _relative(file: str) -> str:
    """``file`` relative to the current directory; empty if it is elsewhere."""
    try:
        return Path(file).resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (OSError, ValueError, RuntimeError):
        return ""


def _uri(file: str) -> str:
    relative, path = _relative(file), Path(file)
    return (
        path.as_uri() if path.is_absolute() and not relative else quote(relative or path.as_posix(), errors="replace")
    )

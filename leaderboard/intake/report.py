"""The report of a submission check: a line for each submission, and its findings.

Findings of several tasks that only differ in the task are folded into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from medtasks.core.findings import Finding
from medtasks.core.text import first_names, one_line

from .check import CheckReport
from .submission_findings import SubmissionFinding

OVERVIEW = ("result", "submission", "why")
"""Headings of :func:`overview`."""
_MOST = 3
"""Kinds of findings that a line names."""


def overview(report: CheckReport) -> list[tuple[str, str, str]]:
    """A row for each submission: its result, its name, and the kinds of findings behind it.

    The result is *ok*, *warnings* or *refused*.
    """
    rows = []
    for name in report.submissions:
        result, decisive = _result(_findings_of(report, name))
        kinds = dict.fromkeys(f"{finding.check} ({finding.code})" for finding in decisive)
        rows.append((result, one_line(name), first_names(kinds, _MOST, "; ")))
    return rows


def _findings_of(report: CheckReport, name: str) -> list[SubmissionFinding]:
    return [finding for finding in report.findings if finding.submission == name]


def _result(findings: Sequence[SubmissionFinding]) -> tuple[str, Sequence[SubmissionFinding]]:
    """The result of a submission with these findings, and those that decide it."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        return "refused", errors
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if warnings:
        return "warnings", warnings
    return "ok", ()


def folded(report: CheckReport) -> dict[str, list[Finding]]:
    """The findings by submission; those that only differ in the task are one.

    It names the first task and counts the others.
    """
    by_submission: dict[str, list[Finding]] = {}
    for name in report.submissions:
        same_message: dict[tuple[str, str, str], list[SubmissionFinding]] = {}
        for finding in _findings_of(report, name):
            task = finding.where.partition(": ")[0]
            kind = (finding.severity, finding.code, finding.message.replace(task, "…"))
            same_message.setdefault(kind, []).append(finding)
        if same_message:
            by_submission[name] = [_folded(findings) for findings in same_message.values()]
    return by_submission


def _folded(findings: Sequence[SubmissionFinding]) -> Finding:
    """The first finding, with the number of the others in its place."""
    first, *more = findings
    if not more:
        return first
    return replace(first, where=f"{first.where} and {len(more):,} more")

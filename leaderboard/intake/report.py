"""The report of a submission check: a line for each submission, and its findings, those of several
tasks folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from medtasks.core.findings import Finding
from medtasks.core.text import first_names, one_line

from .check import CheckReport
from .check_run import SubmissionFinding

OVERVIEW = ("result", "submission", "why")
"""Headings of :func:`overview`."""
_MOST = 3
"""Kinds of findings that a line names."""


def overview(report: CheckReport) -> list[tuple[str, str, str]]:
    """A row for each submission: *ok*, *warnings* or *refused*, its name, and the kinds of findings
    that decide so.
    """
    rows = []
    for name in report.submissions:
        findings = [one for one in report.findings if one.submission == name]
        errors = [one for one in findings if one.severity == "error"]
        warnings = [one for one in findings if one.severity == "warning"]
        result = "refused" if errors else "warnings" if warnings else "ok"
        kinds = dict.fromkeys(f"{one.check} ({one.code})" for one in errors or warnings)
        rows.append((result, one_line(name), first_names(kinds, _MOST, "; ")))
    return rows


def folded(report: CheckReport) -> dict[str, list[Finding]]:
    """The findings by submission; those that only differ in the task are one, which names the first
    and counts them.
    """
    by_submission: dict[str, list[Finding]] = {}
    for name in report.submissions:
        alike: dict[tuple[str, str, str], list[SubmissionFinding]] = {}
        for one in report.findings:
            if one.submission == name:
                task = one.where.partition(": ")[0]
                alike.setdefault(
                    (one.severity, one.code, one.message.replace(task, "…")), []
                ).append(one)
        if alike:
            by_submission[name] = [_folded(several) for several in alike.values()]
    return by_submission


def _folded(alike: Sequence[SubmissionFinding]) -> Finding:
    first, more = alike[0], len(alike) - 1
    return replace(first, where=f"{first.where} and {more:,} more") if more else first

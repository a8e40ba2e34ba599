"""Findings with the same cause, reported once: a shared file or template is at fault in every task
that uses it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace

from medtasks.core.findings import Finding
from medtasks.core.text import first_names

_COUNT = re.compile(r"[\d,]+ of [\d,]+ documents, first .*?: ")


def merge_by_cause(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each cause, sorted by place; it names the other tasks that have the cause."""
    errors = {f"{error.file}, line {error.line}" for error in findings if error.severity == "error"}
    causes: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        quoted_place = finding.message.partition(": ")[0]
        if quoted_place not in errors:  # else it repeats the error of a file that it depends on
            causes.setdefault(_cause(finding), []).append(finding)
    merged = [_merged(same_cause) for same_cause in causes.values()]
    return sorted(merged, key=_by_place)


def _by_place(finding: Finding) -> tuple[str, int, str, str, str]:
    return finding.file, finding.line or 0, finding.code, finding.field, finding.message


def _cause(finding: Finding) -> Hashable:
    """The cause of a finding: a defect of documents, or else the place at fault."""
    count = _COUNT.match(finding.message)
    is_about_documents, is_about_scores = finding.code[2] == "3", finding.code[2] == "5"
    if finding.code == "MT303":
        return finding.code, finding.field, finding.message
    if count and is_about_documents:
        return finding.code, finding.field, finding.message[count.end() :]
    if finding.code == "MT509":  # any unusual response shows the same defect of the code
        return finding.code, finding.file, finding.line
    if count or is_about_scores:
        return finding.code, finding.file, finding.line, finding.field
    return finding.code, finding.file, finding.line, finding.field, finding.message


def _merged(same_cause: Sequence[Finding]) -> Finding:
    """The first of several findings with the same cause, with the names of the other tasks."""
    first, *repeated = same_cause
    tasks = dict.fromkeys(finding.where for finding in repeated if finding.where != first.where)
    if not tasks or repeated[0].message == first.message:
        return first
    return replace(first, message=f"{first.message} Also in {first_names(tasks)}.")

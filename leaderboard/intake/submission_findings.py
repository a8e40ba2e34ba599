"""Findings of the submission check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from typing_extensions import Unpack

from medtasks.core.findings import Finding, Severity

from .rules import RULES


@dataclass(frozen=True)
class SubmissionFinding(Finding):
    """A finding about a submission, with its name: the path below the given root, and the model."""

    submission: str = ""


class ProblemDetails(TypedDict, total=False):
    """Further facts about a finding; the rule's own texts are used for those that are left out."""

    expected: str
    fix: str
    severity: Severity | None
    line: int | None
    submission: str


def problem(
    code: str,
    where: str,
    observed: str,
    *,
    file: Path | None = None,
    field: str = "",
    **details: Unpack[ProblemDetails],
) -> SubmissionFinding:
    """A finding of rule ``code``: what was observed and expected, and how to fix it.

    Args:
        code: that of the rule.
        where: the submission, task or file that the finding is about.
        observed: what was found there.
        file: the file with the fault.
        field: the field with the fault.
        **details: what differs from the rule's own texts, the line, and the submission's name.
    """
    rule = RULES[code]
    place = f"field `{field}`: " if field else ""
    expected = details.get("expected") or rule.expected
    fix = details.get("fix") or rule.fix
    return SubmissionFinding(
        severity=details.get("severity") or rule.severity,
        check=rule.title,
        where=where,
        message=f"{place}{observed}, expected {expected}; {fix}.",
        code=code,
        file=str(file or ""),
        line=details.get("line"),
        field=field,
        submission=details.get("submission", ""),
    )

"""What a submission can be refused for, or warned of; a code never changes its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from medtasks.validation.codes import Rule
from medtasks.validation.findings import Finding, Severity

__all__ = ["RULES", "problem"]

_RULES = (
    Rule("LB101", "error", "no result folder"),
    Rule("LB102", "error", "result folder cannot be read"),
    Rule("LB103", "error", "file does not belong to a result folder"),
    Rule("LB104", "error", "link instead of a file"),
    Rule("LB105", "error", "scores are not those of the samples"),
    Rule("LB106", "error", "sample is scored otherwise by today's rules"),
    Rule("LB107", "warning", "metric cannot be computed here"),
    Rule("LB201", "error", "not every document was asked"),
    Rule("LB202", "error", "miniature data"),
    Rule("LB203", "error", "protocol is not today's"),
    Rule("LB204", "error", "too little of the release is covered"),
    Rule("LB205", "error", "responses are not judged"),
    Rule("LB206", "warning", "blind run"),
    Rule("LB207", "warning", "task of no installed package"),
    Rule("LB208", "warning", "part of the benchmark"),
    Rule("LB209", "warning", "data differ from those of the other runs"),
    Rule("LB210", "error", "requests without a response"),
    Rule("LB301", "error", "key or token"),
    Rule("LB302", "error", "path of a machine"),
    Rule("LB303", "error", "hidden text in a prompt"),
    Rule("LB304", "error", "rows of data that must not be shared"),
    Rule("LB305", "error", "samples without prompts and responses"),
    Rule("LB401", "error", "document is not the data's"),
    Rule("LB402", "warning", "documents cannot be compared"),
    Rule("LB403", "error", "prompt is not the template's"),
)

RULES: Mapping[str, Rule] = {rule.code: rule for rule in _RULES}
"""The rules by code."""


def problem(
    code: str,
    where: str,
    found: str,
    expected: str,
    fix: str,
    *,
    file: Path | None = None,
    line: int | None = None,
    field: str = "",
    severity: Severity | None = None,
) -> Finding:
    """The finding of rule ``code``: one sentence of what was found, what was expected, and how to fix it."""
    rule = RULES[code]
    place = f"field `{field}`: " if field else ""
    return Finding(
        severity=severity or rule.severity,
        check=rule.title,
        where=where,
        message=f"{place}{found}, expected {expected}; {fix}.",
        code=code,
        file=str(file) if file is not None else "",
        line=line,
        field=field,
    )

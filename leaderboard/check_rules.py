"""The rules of the submission check, each with a stable code, and how their findings are worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample
from medtasks.validation.findings import Finding, Rule, Severity

from .digest import Digest

MOST = 5
"""Maximum number of findings of one kind per task or file."""

_RULES = (
    Rule("LB101", "error", "no result directory"),
    Rule("LB102", "error", "result directory cannot be read"),
    Rule("LB103", "error", "file does not belong to a result directory"),
    Rule("LB104", "error", "link instead of a file"),
    Rule("LB106", "error", "learned metric differs from what its model gives"),
    Rule("LB107", "warning", "metric cannot be computed here"),
    Rule("LB201", "error", "not every document was asked"),
    Rule("LB202", "error", "miniature data"),
    Rule("LB203", "error", "protocol differs from today's"),
    Rule("LB204", "error", "too little of the release is covered"),
    Rule("LB205", "error", "responses are not judged"),
    Rule("LB206", "warning", "blind run"),
    Rule("LB207", "warning", "task of no installed package"),
    Rule("LB208", "warning", "part of the benchmark"),
    Rule("LB209", "warning", "data differ from those of the other runs"),
    Rule("LB210", "error", "requests without a response"),
    Rule("LB211", "warning", "newer run of a model"),
    Rule("LB212", "warning", "responses of another model"),
    Rule("LB301", "error", "key or token"),
    Rule("LB302", "error", "path of one machine"),
    Rule("LB303", "error", "hidden text in a prompt"),
    Rule("LB304", "error", "rows of data that must not be shared"),
    Rule("LB305", "error", "samples without prompts and responses"),
    Rule("LB401", "error", "samples are not of the data"),
    Rule("LB402", "warning", "run cannot be verified here"),
    Rule("LB403", "error", "prompt differs from the template"),
)

RULES: Mapping[str, Rule] = {rule.code: rule for rule in _RULES}
"""The rules by code; a code never changes its meaning."""


@dataclass(frozen=True)
class Submission:
    """A run that could be read: its directory, content and digest."""

    folder: Path
    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    digest: Digest

    @property
    def manifest_file(self) -> Path:
        return self.folder / "manifest.json"

    def samples_file(self, task: str) -> Path:
        return self.folder / "samples" / f"{task}.jsonl"


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
    """A finding of rule ``code``, in one sentence: what was found, what was expected, and how to fix it."""
    rule = RULES[code]
    place = f"field `{field}`: " if field else ""
    message = f"{place}{found}, expected {expected}; {fix}."
    return Finding(severity or rule.severity, rule.title, where, message, code, str(file or ""), line, field)

"""Checks of task files, templates and prepared data: what a reviewer would look for before trusting a number."""

from __future__ import annotations

from medtasks.validation.findings import Finding, Severity
from medtasks.validation.prepared import validate_prepared
from medtasks.validation.report import COLUMNS, as_annotations, as_json, as_rows, as_sarif, failed, summary
from medtasks.validation.tasks import validate_tasks

__all__ = [
    "COLUMNS",
    "Finding",
    "Severity",
    "as_annotations",
    "as_json",
    "as_rows",
    "as_sarif",
    "failed",
    "summary",
    "validate_prepared",
    "validate_tasks",
]

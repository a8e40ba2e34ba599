"""Checks of task files, templates, prepared data and scores: what a reviewer looks for before trusting a number."""

from __future__ import annotations

from medtasks.validation.behaviour import validate_behaviour
from medtasks.validation.findings import Finding, Severity
from medtasks.validation.packages import validate_packages
from medtasks.validation.prepared import validate_prepared
from medtasks.validation.processes import validate_processes
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
    "validate_behaviour",
    "validate_packages",
    "validate_prepared",
    "validate_processes",
    "validate_tasks",
]

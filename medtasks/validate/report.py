"""Collects the findings about one task; documents with the same defect are one finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.text import shortened


class TaskReport:
    """Findings about a task with so many ``documents``: about its file, each document, or all of them."""

    def __init__(self, source: TaskSource, documents: int = 0) -> None:
        self.source = source
        self.documents = documents
        self.place = source.place("process_docs")
        self._findings: list[Finding] = []
        self._general: dict[tuple[str, str], Finding] = {}
        self._counts: dict[tuple[str, str], tuple[str, Place | None, str | None, dict[str, None]]] = {}

    def add(self, *findings: Finding) -> None:
        self._findings += findings

    def key(self, code: str, message: str, *keys: str | int, **changed: Any) -> None:
        """Report something about the value at ``keys`` of the task file; ``changed`` are its `fix` or `severity`."""
        self._findings.append(self.source.finding(code, message, *keys, **changed))

    def say(self, code: str, message: str, field: str = "", place: Place | None = None, **changed: Any) -> None:
        """Report something about ``field`` in all documents; only the first report per code and field is kept."""
        one = finding(code, self.source.name, message, place or self.place, field, **changed)
        self._general.setdefault((code, field), one)

    def count(
        self,
        code: str,
        document: Mapping[str, Any],
        message: str,
        field: str = "",
        place: Place | None = None,
        fix: str | None = None,
    ) -> None:
        """Count one document that breaks the rule ``code``; the ``message`` and ``place`` of the first are kept."""
        *_, documents = self._counts.setdefault((code, field), (message, place, fix, {}))
        documents[str(document.get("sample_id", "(no id)"))] = None

    def has(self, code: str, field: str = "") -> bool:
        return (code, field) in self._counts or (code, field) in self._general

    def withdraw(self, code: str, field: str) -> None:
        """Drop the count of a field, because another rule covers it better."""
        self._counts.pop((code, field), None)

    def findings(self) -> list[Finding]:
        """All findings; a defect of documents that were all reported for another task is not among them."""
        counted = []
        for (code, field), (message, place, fix, documents) in self._counts.items():
            first = shortened(next(iter(documents)), 120)
            sentence = f"{len(documents):,} of {self.documents:,} documents, first {first!r}: {message}"
            counted.append(finding(code, self.source.name, sentence, place or self.place, field, fix=fix))
        return [*self._findings, *counted, *self._general.values()]

"""The report on one task: findings about its file and its documents, and counts of the documents
that break a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.text import shortened

Document = Mapping[str, Any]
Documents = Sequence[Document]


@dataclass
class _BrokenRule:
    """The documents that break one rule; message and place are those of the first."""

    message: str
    place: Place
    sample_ids: dict[str, None] = field(default_factory=dict)


class TaskReport:
    """Collects the findings about a task with ``document_count`` documents."""

    def __init__(self, source: TaskSource, document_count: int = 0) -> None:
        self.source = source
        self.document_count = document_count
        self.place = source.place("process_docs")
        self._findings: list[Finding] = []
        self._about_all: dict[tuple[str, str], Finding] = {}
        self._broken: dict[tuple[str, str], _BrokenRule] = {}

    def add(self, *findings: Finding) -> None:
        self._findings += findings

    def on_key(self, code: str, message: str, *keys: str | int, **changed: Any) -> None:
        """Report the value at ``keys`` of the task file; ``changed`` may have another `fix` or
        `severity`.
        """
        self._findings.append(self.source.finding(code, message, *keys, **changed))

    def on_task(
        self, code: str, message: str, field: str = "", place: Place | None = None, **changed: Any
    ) -> None:
        """Report ``field`` of all documents; only the first report per code and field is kept."""
        if (code, field) not in self._about_all:
            self._about_all[code, field] = finding(
                code, self.source.name, message, place or self.place, field, **changed
            )

    def on_document(
        self,
        code: str,
        document: Document,
        message: str,
        field: str = "",
        place: Place | None = None,
    ) -> None:
        """Count a document that breaks the rule ``code``; only the first ``message`` per code and
        field is kept.
        """
        if (code, field) not in self._broken:
            self._broken[code, field] = _BrokenRule(message, place or self.place)
        sample_id = str(document.get("sample_id", "(no id)"))
        self._broken[code, field].sample_ids[sample_id] = None

    def findings(self) -> list[Finding]:
        """All findings: about the file, then about counted documents, then about the task."""
        counted = []
        for (code, field_name), rule in self._broken.items():
            first = shortened(next(iter(rule.sample_ids)), 120)
            share = f"{len(rule.sample_ids):,} of {self.document_count:,} documents"
            message = f"{share}, first {first!r}: {rule.message}"
            counted.append(finding(code, self.source.name, message, rule.place, field_name))
        return [*self._findings, *counted, *self._about_all.values()]

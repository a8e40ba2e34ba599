"""Findings about many documents: one for each thing that is wrong, with how often, and the first of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.validation.codes import found
from medtasks.validation.findings import Finding, Place, Severity

__all__ = ["Tally"]


@dataclass
class _Entry:
    first: str
    message: str
    fix: str
    place: Place | None = None
    count: int = 0
    last: str = ""


class Tally:
    """Counts what is wrong with the documents of one task."""

    def __init__(self, task: str, total: int, place: Place | None = None) -> None:
        self._task = task
        self._total = total
        self._place = place
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._whole: list[Finding] = []

    def add(
        self,
        code: str,
        document: Mapping[str, Any],
        message: str,
        fix: str,
        field: str = "",
        place: Place | None = None,
    ) -> None:
        """One document breaks the rule ``code``; ``message`` and ``place`` tell of the first that does."""
        name = str(document.get("sample_id", "(no id)"))[:120]
        entry = self._entries.setdefault((code, field), _Entry(name, message, fix, place))
        if entry.last != name or not entry.count:
            entry.count += 1
        entry.last = name

    def say(self, code: str, message: str, field: str = "", severity: Severity | None = None) -> None:
        """Something about all documents together."""
        self._whole.append(found(code, self._task, message, self._place, field, severity))

    def has(self, code: str, field: str) -> bool:
        """Whether some document breaks the rule."""
        return (code, field) in self._entries

    def withdraw(self, code: str, field: str) -> None:
        """Forget what was counted: another rule says it better."""
        self._entries.pop((code, field), None)

    def findings(self) -> Iterator[Finding]:
        """What was counted, in the order of the codes, then what was said of all documents together."""
        for (code, field), entry in sorted(self._entries.items()):
            message = (
                f"{entry.count:,} of {self._total:,} documents, first {entry.first!r}: "
                f"{entry.message.rstrip('.;')}; {entry.fix}."
            )
            yield found(code, self._task, message, entry.place or self._place, field)
        yield from self._whole

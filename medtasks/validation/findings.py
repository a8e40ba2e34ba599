"""Findings: what is wrong or worth knowing, where, and how to fix it; many documents with one fault are one finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.schema import field_name
from medtasks.task_source import Defect, Place, TaskSource
from medtasks.validation.codes import RULES, Severity


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing.

    ``where`` is the task, sample or directory concerned; ``code`` is stable (:mod:`medtasks.validation.codes`) and
    ``check`` its title; ``file`` and ``line`` (from 1) are where to fix it, ``field`` the key or document field.
    """

    severity: Severity
    check: str
    where: str
    message: str
    code: str = ""
    file: str = ""
    line: int | None = None
    field: str = ""


def found(
    code: str, where: str, message: str, place: Place | None = None, field: str = "", severity: Severity | None = None
) -> Finding:
    """The finding of rule ``code``, of the rule's severity by default."""
    rule = RULES[code]
    file, line = (str(place.file), place.line) if place else ("", None)
    return Finding(severity or rule.severity, rule.title, where, message, code, file, line, field)


def in_task(task: TaskSource, code: str, message: str, *keys: str | int) -> Finding:
    """The finding of rule ``code`` about the value at ``keys`` of a task file."""
    return found(code, task.name, message, task.place(*keys), field_name(keys))


def of_defects(task: TaskSource, defects: Iterable[Defect]) -> Iterator[Finding]:
    """The defects of a task file as findings."""
    for one in defects:
        yield found(one.code, task.name, one.message, one.place, field_name(one.keys))


@dataclass
class _Entry:
    first: str
    message: str
    fix: str
    place: Place | None
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
        """Count one document that breaks the rule ``code``; ``message`` and ``place`` are kept of the first."""
        name = str(document.get("sample_id", "(no id)"))[:120]
        entry = self._entries.setdefault((code, field), _Entry(name, message, fix, place))
        if entry.last != name or not entry.count:
            entry.count += 1
        entry.last = name

    def say(self, code: str, message: str) -> None:
        """Something about all documents together."""
        self._whole.append(found(code, self._task, message, self._place))

    def has(self, code: str, field: str) -> bool:
        """Whether some document breaks the rule."""
        return (code, field) in self._entries

    def withdraw(self, code: str, field: str) -> None:
        """Forget what was counted, because another rule covers it better."""
        self._entries.pop((code, field), None)

    def findings(self) -> Iterator[Finding]:
        """One finding per rule and field, in the order of the codes, then those about all documents together."""
        for (code, field), entry in sorted(self._entries.items()):
            counts = f"{entry.count:,} of {self._total:,} documents, first {entry.first!r}"
            message = f"{counts}: {entry.message.rstrip('.;')}; {entry.fix}."
            yield found(code, self._task, message, entry.place or self._place, field)
        yield from self._whole

"""Findings about tasks, their rules, and their table; documents with the same defect are one finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from medtasks.schema import field_name
from medtasks.task_source import Defect, Place, TaskSource
from medtasks.text import one_line

Severity = Literal["error", "warning", "note"]


class Rule(NamedTuple):
    """The meaning of a code."""

    code: str
    severity: Severity
    title: str


_RULES = (
    # task files
    Rule("MT101", "error", "YAML cannot be read"),
    Rule("MT102", "error", "file is not a mapping of keys"),
    Rule("MT103", "error", "duplicate key"),
    Rule("MT104", "error", "included file is missing"),
    Rule("MT105", "error", "circular include"),
    Rule("MT106", "error", "name differs from the file's"),
    Rule("MT107", "error", "unknown key"),
    Rule("MT108", "error", "unknown metadata key"),
    Rule("MT109", "error", "value has the wrong type or is out of range"),
    Rule("MT110", "error", "required key is missing"),
    Rule("MT111", "error", "required metadata is missing"),
    Rule("MT112", "error", "value is not allowed"),
    Rule("MT113", "error", "generation settings contradict each other"),
    Rule("MT114", "error", "duplicate entry"),
    Rule("MT115", "error", "task in groups/, or group outside of it"),
    Rule("MT116", "warning", "file is never read"),
    Rule("MT117", "warning", "unknown generation setting"),
    Rule("MT118", "note", "shared part that nothing includes"),
    Rule("MT119", "error", "two files have the same task name"),
    Rule("MT120", "error", "function cannot be imported"),
    Rule("MT121", "error", "imported object is not of the expected kind"),
    Rule("MT123", "error", "unknown filter"),
    Rule("MT124", "error", "unknown metric"),
    Rule("MT125", "error", "unknown aggregation"),
    Rule("MT126", "error", "rubric is unknown or broken"),
    Rule("MT127", "error", "unknown breakdown"),
    Rule("MT128", "error", "unknown pooled metric"),
    Rule("MT129", "error", "unknown learned metric"),
    Rule("MT130", "error", "unknown benchmark"),
    Rule("MT131", "error", "unknown task to compare with"),
    Rule("MT132", "error", "unknown group member"),
    Rule("MT133", "error", "circular groups"),
    Rule("MT134", "error", "aggregation belongs to another metric"),
    Rule("MT135", "error", "direction of the metric is reversed"),
    Rule("MT136", "warning", "member belongs to another benchmark"),
    Rule("MT137", "error", "rows belong to another benchmark"),
    Rule("MT138", "error", "name is taken by lmms-eval"),
    Rule("MT140", "error", "description of the benchmark is incomplete"),
    Rule("MT141", "note", "benchmark does not state language or intended use"),
    Rule("MT142", "warning", "no cluster key"),
    Rule("MT143", "error", "options cannot be rotated, or prompts not varied"),
    Rule("MT144", "error", "confidences cannot be compared with answers"),
    Rule("MT145", "error", "name of a kind of error cannot be used"),
    Rule("MT146", "warning", "kind of error names an answer that no document has"),
    Rule("MT150", "error", "package, or a part of it, is left out"),
    # templates
    Rule("MT201", "error", "template is missing"),
    Rule("MT202", "error", "template cannot be parsed"),
    Rule("MT203", "error", "template uses an unknown variable"),
    Rule("MT204", "error", "template uses a hidden field"),
    Rule("MT205", "error", "included template is missing"),
    Rule("MT206", "warning", "template shows nothing of the question"),
    Rule("MT207", "error", "template does not show the options"),
    Rule("MT208", "error", "prompt cannot be rendered"),
    Rule("MT209", "error", "hidden text in a prompt"),
    Rule("MT210", "error", "circular template include"),
    Rule("MT211", "error", "template includes by a computed name"),
    Rule("MT212", "error", "prompt is empty"),
    Rule("MT213", "warning", "template uses a field that no document has"),
    Rule("MT214", "error", "option is not in the prompt"),
    Rule("MT215", "error", "benchmark lets prompts show the answer"),
    Rule("MT216", "warning", "question is not in the prompt"),
    Rule("MT217", "error", "documents lack a field that the judge is shown"),
    Rule("MT218", "error", "judge's prompt cannot be rendered"),
    Rule("MT219", "error", "prompt contains the gold answer"),
    Rule("MT220", "error", "two templates render the same prompt"),
    # documents
    Rule("MT300", "note", "documents not checked: data are not prepared"),
    Rule("MT301", "error", "documents cannot be made"),
    Rule("MT302", "note", "documents not checked: rows are a plain function"),
    Rule("MT303", "error", "task has no documents"),
    Rule("MT304", "error", "document field is missing or has the wrong type"),
    Rule("MT305", "error", "duplicate sample id"),
    Rule("MT306", "warning", "duplicate record"),
    Rule("MT307", "error", "answer is not among the options"),
    Rule("MT308", "error", "answer is empty"),
    Rule("MT309", "error", "cluster is empty"),
    Rule("MT310", "error", "question is empty"),
    Rule("MT311", "error", "fewer than two options"),
    Rule("MT312", "error", "all options are equal"),
    Rule("MT313", "warning", "options are nearly equal"),
    Rule("MT314", "warning", "correct answers favour a position"),
    Rule("MT315", "note", "correct answers are the longest"),
    Rule("MT316", "error", "option is empty"),
    Rule("MT317", "warning", "document has no media"),
    Rule("MT318", "error", "option letters are not those of the benchmark"),
    Rule("MT319", "warning", "same question, different answers"),
    Rule("MT320", "error", "document belongs to another benchmark"),
    Rule("MT321", "error", "document cannot be written as JSON"),
    Rule("MT322", "error", "field has several types"),
    Rule("MT323", "warning", "question contains its answer"),
    Rule("MT325", "warning", "gold answer is doubtful"),
    Rule("MT330", "error", "temporal contract is violated"),
    # prepared data
    Rule("MT401", "error", "records cannot be read"),
    Rule("MT402", "error", "media file is missing or does not decode"),
    Rule("MT403", "error", "document cannot be rendered"),
    Rule("MT404", "note", "counts differ from the published ones"),
    Rule("MT405", "note", "records were left out"),
    # behaviour
    Rule("MT500", "note", "behaviour not checked"),
    Rule("MT501", "error", "oracle does not reach the top score"),
    Rule("MT502", "error", "score does not separate answers from none"),
    Rule("MT503", "error", "shuffled answers score no lower"),
    Rule("MT504", "error", "value is out of the metric's range"),
    Rule("MT505", "error", "score does not follow from its statistics"),
    Rule("MT506", "error", "score depends on the order of samples"),
    Rule("MT507", "error", "scoring fails"),
    Rule("MT508", "error", "statistics are missing, or of another width"),
    Rule("MT509", "error", "unusual response breaks the scoring"),
    Rule("MT511", "error", "metric cannot read the answers"),
    Rule("MT512", "error", "cases of errors depend on the response"),
)

RULES: Mapping[str, Rule] = {rule.code: rule for rule in _RULES}
"""The rules by code, in the order of their codes."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing.

    ``where`` is the task, sample or directory concerned; ``code`` is stable (:mod:`medtasks.validation.findings`) and
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
    """Collects the defects of one task: counts of documents, and statements about a field or all documents."""

    def __init__(self, task: str, total: int, place: Place | None = None) -> None:
        self._task = task
        self._total = total
        self._place = place
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._whole: dict[tuple[str, str], Finding] = {}

    def add(
        self,
        code: str,
        document: Mapping[str, Any],
        message: str,
        fix: str,
        field: str = "",
        place: Place | None = None,
    ) -> None:
        """Count one document that breaks the rule ``code``; the ``message`` and ``place`` of the first are kept."""
        name = str(document.get("sample_id", "(no id)"))[:120]
        entry = self._entries.setdefault((code, field), _Entry(name, message, fix, place))
        if entry.last != name or not entry.count:
            entry.count += 1
        entry.last = name

    def say(
        self, code: str, message: str, field: str = "", place: Place | None = None, severity: Severity | None = None
    ) -> None:
        """Report something about ``field`` in all documents; only the first report per code and field is kept."""
        one = found(code, self._task, message, place or self._place, field, severity)
        self._whole.setdefault((code, field), one)

    def has(self, code: str, field: str = "") -> bool:
        """Whether the field breaks the rule."""
        return (code, field) in self._entries or (code, field) in self._whole

    def withdraw(self, code: str, field: str) -> None:
        """Drop the count of a field, because another rule covers it better."""
        self._entries.pop((code, field), None)

    def findings(self) -> list[Finding]:
        """One finding per rule and field, in the order of the codes."""
        counted = []
        for (code, field), entry in self._entries.items():
            counts = f"{entry.count:,} of {self._total:,} documents, first {entry.first!r}"
            message = f"{counts}: {entry.message.rstrip('.;')}; {entry.fix}."
            counted.append(found(code, self._task, message, entry.place or self._place, field))
        return sorted([*counted, *self._whole.values()], key=lambda one: (one.code, one.field))


COLUMNS = ("severity", "code", "where", "place", "message")
"""Headings of :func:`as_rows`."""

_WORST_FIRST = ("error", "warning", "note")


def failed(findings: Sequence[Finding], strict: bool = False) -> bool:
    """Whether there is an error or, if ``strict``, a warning."""
    return any(one.severity == "error" or (strict and one.severity == "warning") for one in findings)


def summary(findings: Sequence[Finding]) -> str:
    """The number of findings of each severity, on one line."""
    counts = Counter[str](one.severity for one in findings)
    return ", ".join(f"{counts[name]:,} {name}{'' if counts[name] == 1 else 's'}" for name in _WORST_FIRST)


def as_rows(findings: Sequence[Finding]) -> list[tuple[str, str, str, str, str]]:
    """Rows of a table, errors first; files below the current directory relative to it."""
    ordered = sorted(findings, key=lambda one: _WORST_FIRST.index(one.severity))
    return [(one.severity, one.code, one_line(one.where), _place(one), one_line(one.message)) for one in ordered]


def _place(finding: Finding) -> str:
    file = (_relative(finding.file) or finding.file) if finding.file else ""
    return one_line(f"{file}:{finding.line}" if finding.line else file)


def _relative(file: str) -> str:
    """``file`` relative to the current directory; empty if it is elsewhere."""
    try:
        return Path(file).resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (OSError, ValueError, RuntimeError):
        return ""

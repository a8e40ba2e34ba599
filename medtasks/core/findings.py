"""The rules of ``medtasks validate``, the findings of its checks, and the rows of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from medtasks.core.text import counted, one_line

Severity = Literal["error", "warning", "note"]


class Rule(NamedTuple):
    """A rule of `medtasks validate` (codes MT…), or of the check of submissions (codes LB…).

    ``title`` is the defect; ``fix`` and ``expected`` are in findings by default.
    """

    code: str
    severity: Severity
    title: str
    fix: str = ""
    expected: str = ""


class Place(NamedTuple):
    """A line of a file, counted from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


_RULES = (
    # task files
    Rule("MT101", "error", "YAML cannot be read", "fix the line"),
    Rule("MT102", "error", "file is not a mapping of keys", "write `key: value`"),
    Rule("MT103", "error", "duplicate key", "remove one"),
    Rule("MT104", "error", "included file is missing", "correct the path, relative to this file"),
    Rule("MT105", "error", "circular include", "break the cycle"),
    Rule("MT106", "error", "name differs from the file's", "rename one"),
    Rule("MT107", "error", "unknown key", "correct or remove it"),
    Rule("MT109", "error", "value is not allowed", "correct the value"),
    Rule("MT110", "error", "required key is missing", "add it"),
    Rule("MT113", "error", "settings contradict each other"),
    Rule("MT114", "error", "duplicate entry", "correct the value"),
    Rule("MT115", "error", "task in groups/, or group outside of it"),
    Rule("MT116", "warning", "file is never read", "rename it"),
    Rule("MT117", "warning", "unknown generation setting", "check it"),
    Rule("MT119", "error", "two files have the same task name", "rename one of them"),
    Rule(
        "MT120", "error", "function cannot be imported", "correct the name, or install its package"
    ),
    Rule("MT121", "error", "imported object is not of the expected kind", "name one"),
    Rule("MT124", "error", "unknown name", "correct the name, or register it in its package"),
    Rule("MT133", "error", "circular groups", "remove one"),
    Rule("MT134", "error", "aggregation belongs to another metric", "correct the name"),
    Rule("MT135", "error", "direction of the metric is reversed", "correct it"),
    Rule("MT136", "warning", "member belongs to another benchmark", "move it to another group"),
    Rule("MT137", "error", "rows belong to another benchmark", "correct one of them"),
    Rule("MT138", "error", "name is taken by lmms-eval", "rename it"),
    Rule("MT140", "error", "description of the benchmark is incomplete", "add it to Benchmark"),
    Rule("MT142", "warning", "no cluster key", "name a field of the documents, such as `cluster`"),
    Rule("MT143", "error", "options cannot be rotated, or prompts not varied"),
    Rule("MT144", "error", "confidences cannot be compared with answers", "name a metric that is"),
    Rule("MT145", "error", "name of a kind of error cannot be used"),
    Rule("MT146", "warning", "kind of error names an answer that no document has", "correct it"),
    Rule("MT147", "error", "metric_list does not fit the `scored_by` of `process_results`"),
    Rule("MT150", "error", "package, or a part of it, is left out"),
    # templates
    Rule("MT201", "error", "template is missing", "correct the name, or add the file"),
    Rule("MT202", "error", "template cannot be parsed", "fix the line"),
    Rule(
        "MT203", "error", "template uses what prompts cannot show", "correct the name, or remove it"
    ),
    Rule("MT208", "error", "prompt cannot be rendered", "fix template or document"),
    Rule("MT209", "error", "hidden text in a prompt", "remove it"),
    Rule("MT212", "error", "prompt is empty", "show the question"),
    Rule("MT214", "error", "option is not in the prompt", "show every option as it is"),
    Rule("MT215", "error", "benchmark lets prompts show the answer", "remove it"),
    Rule("MT216", "warning", "question is not in the prompt", "show `question` as it is"),
    Rule("MT218", "error", "judge's prompt cannot be rendered", "fix rubric, template or document"),
    Rule("MT219", "error", "prompt contains the gold answer", "remove the answer from it"),
    Rule("MT220", "error", "two templates render the same prompt", "rephrase it"),
    Rule(
        "MT221",
        "warning",
        "option is shown without its letter",
        "write `A. text`, since the filter reads letters",
    ),
    # documents
    Rule(
        "MT300",
        "note",
        "documents not checked: data are not prepared",
        "prepare the data to have them checked",
    ),
    Rule("MT301", "error", "documents cannot be made", "fix the loader, or prepare the data again"),
    Rule(
        "MT302",
        "note",
        "documents not checked: rows are a plain function",
        "make it one to have documents checked",
    ),
    Rule("MT303", "error", "task has no documents"),
    Rule(
        "MT304",
        "error",
        "document field is missing, empty or of the wrong type",
        "correct it in `documents`",
    ),
    Rule("MT305", "error", "duplicate sample id", "number them"),
    Rule("MT306", "warning", "duplicate record", "remove one"),
    Rule("MT307", "error", "answer is not among the options", "fix the record"),
    Rule("MT311", "error", "fewer than two different options", "fix the record"),
    Rule("MT313", "warning", "options are nearly equal", "check that only one is correct"),
    Rule(
        "MT314", "warning", "correct answers favour a position", "shuffle the options, or report it"
    ),
    Rule("MT315", "note", "correct answers are the longest", "make options equally long"),
    Rule("MT316", "error", "option is empty", "fix the record"),
    Rule("MT317", "warning", "document has no media", "fix the record"),
    Rule("MT318", "error", "option letters are not those of the benchmark", "rename them"),
    Rule("MT319", "warning", "same question, different answers", "keep the right one"),
    Rule(
        "MT321",
        "error",
        "document cannot be written as JSON",
        "use strings, finite numbers, lists and mappings",
    ),
    Rule("MT322", "error", "field has several types", "use one type in `documents`"),
    Rule("MT325", "warning", "gold answer is doubtful", "read scores on such documents with care"),
    Rule("MT330", "error", "temporal contract is violated", "prepare the data again"),
    # prepared data
    Rule("MT401", "error", "records cannot be read"),
    Rule("MT402", "error", "media file is missing or does not decode"),
    Rule("MT404", "note", "counts differ from the published ones"),
    Rule("MT405", "note", "records were left out"),
    # behaviour
    Rule("MT500", "note", "behaviour not checked", "fix the other findings first"),
    Rule(
        "MT501",
        "error",
        "oracle does not reach the top score",
        "check filter, targets and `ideal_response`",
    ),
    Rule(
        "MT502",
        "error",
        "score does not separate right answers from wrong ones",
        "check metric, answers and `process_results`",
    ),
    Rule("MT504", "error", "value is out of the metric's range", "fix the metric"),
    Rule("MT507", "error", "scoring fails", "fix the code that scores it"),
    Rule(
        "MT508",
        "error",
        "statistics are missing, or of another width",
        "correct `width` or `statistics`",
    ),
    Rule("MT509", "error", "unusual response breaks the scoring", "return a status instead"),
    Rule(
        "MT512",
        "error",
        "cases of errors depend on the response",
        "list cases by the gold answer alone",
    ),
)

RULES = {rule.code: rule for rule in _RULES}
"""The rules of ``medtasks validate`` by code, in the order of their codes."""


@dataclass(frozen=True)
class Finding:
    """An error, a warning or a note about a place.

    ``where`` is the task, sample or directory concerned; ``code`` is stable and ``check`` its
    title; ``file`` and ``line`` (from 1) are where to fix it, ``field`` the key or document field.
    """

    severity: Severity
    check: str
    where: str
    message: str
    code: str = ""
    file: str = ""
    line: int | None = None
    field: str = ""


def finding(
    code: str,
    where: str,
    message: str,
    place: Place | None = None,
    field: str = "",
    *,
    fix: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    """The finding of rule ``code``, of the rule's severity and with its fix by default."""
    rule = RULES[code]
    parts = [message.rstrip(".;"), rule.fix if fix is None else fix]
    return Finding(
        severity=severity or rule.severity,
        check=rule.title,
        where=where,
        message=f"{'; '.join(filter(None, parts))}.",
        code=code,
        file=str(place.file) if place else "",
        line=place.line if place else None,
        field=field,
    )


COLUMNS = ("severity", "code", "where", "place", "message")
"""Headings of :func:`as_rows`."""

_WORST_FIRST = ("error", "warning", "note")


def failed(findings: Sequence[Finding], strict: bool = False) -> bool:
    """Whether there is an error or, if ``strict``, a warning."""
    failing = ("error", "warning") if strict else ("error",)
    return any(finding.severity in failing for finding in findings)


def summary(findings: Sequence[Finding]) -> str:
    """The number of findings of each severity, on one line."""
    counts = Counter[str](finding.severity for finding in findings)
    return ", ".join(counted(counts[severity], severity) for severity in _WORST_FIRST)


def as_rows(findings: Sequence[Finding]) -> list[tuple[str, str, str, str, str]]:
    """Rows of a table, errors first; files below the current directory relative to it."""
    rows = []
    for finding in sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.severity)):
        where, message = one_line(finding.where), one_line(finding.message)
        place = one_line(_relative_place(finding))
        rows.append((str(finding.severity), finding.code, where, place, message))
    return rows


def _relative_place(finding: Finding) -> str:
    """The file of a finding, relative to the current directory if it is below it, and the line."""
    file = finding.file
    if file:
        with suppress(OSError, ValueError, RuntimeError):  # elsewhere, or not a path at all
            file = Path(file).resolve().relative_to(Path.cwd().resolve()).as_posix()
    return f"{file}:{finding.line}" if finding.line else file

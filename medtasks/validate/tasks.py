"""Rules for a task or group as a whole: its name, members, templates, confidences and kinds of error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import cache

from medtasks.benchmarks.errors import gold_text
from medtasks.catalog.contents import task_files
from medtasks.catalog.spec import read_installed
from medtasks.catalog.task_model import GroupFile, TaskFile, read_task
from medtasks.catalog.task_source import kind_of
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import failed
from medtasks.core.schema import shown, suggestion, unknown
from medtasks.core.text import first_names
from medtasks.metrics.closed_answer import normalise
from medtasks.metrics.registry import get_metric
from medtasks.validate.documents import Documents, options_of
from medtasks.validate.report import TaskReport


class Files:
    """Task and group files by name, at first those installed; each file is read once."""

    def __init__(self) -> None:
        self.known = {name: path for name, _, path in task_files()}
        installed = set(self.known.values())
        self.read = cache(lambda path: read_installed(path) if path in installed else read_task(path))

    def everything_in(self, names: Iterable[str]) -> list[str]:
        """The tasks and groups ``names``, and those in the groups, at any depth; files may be faulty."""
        found = [name for name in names if name in self.known]
        for name in found:
            path = self.known[name]
            members = self.read(path).source.entries("task") if kind_of(path) == "group" else []
            found += [one for one in members if isinstance(one, str) and one in self.known and one not in found]
        return list(dict.fromkeys(found))

    def benchmark_of(self, name: str) -> str:
        """The benchmark that a task or group names; empty if it is faulty and names none."""
        named = self.read(self.known[name]).source.block("metadata").get("benchmark")
        return named if isinstance(named, str) else ""


def check_members(file: GroupFile, files: Files, report: TaskReport) -> None:
    """Report members of a group that are unknown, of another benchmark, or contain this group."""
    for number, member in enumerate(file.task):
        if member not in files.known:
            report.key("MT132", unknown("member", member, sorted(files.known)), "task", number)
            continue
        theirs = files.benchmark_of(member)
        if theirs and theirs != file.metadata.benchmark:
            message = f"member {shown(member)} belongs to {shown(theirs)}, expected {shown(file.metadata.benchmark)} "
            report.key("MT136", f"{message}like the group, since scores are pooled", "task", number)
        if file.group in files.everything_in([member]):
            message = f"member {shown(member)} contains {file.group!r}, expected groups that end in tasks"
            report.key("MT133", message, "task", number)


def check_settings(file: TaskFile, report: TaskReport) -> None:
    """Report a missing cluster key, and a metric of ``metadata.confidence`` that cannot say that an answer is right."""
    if file.cluster_key is None:
        report.key("MT142", "`cluster_key` is missing, so samples count as independent", "cluster_key")
    declared = file.metadata.confidence
    if declared is None:
        return
    names = [entry.metric for entry in file.metric_list]
    problem = "" if declared.correct in names else f"not in metric_list ({first_names(names, 8)})"
    with contextlib.suppress(MedtasksError):  # an unknown metric is a finding of its own
        problem = problem or ("" if get_metric(declared.correct).width == 2 else "not 0 or 1 for an answer")
    if problem and not failed(report.findings()):  # else the metric may be in the list, misspelt
        message = f"`confidence.correct` is {shown(declared.correct)}, which is {problem}"
        report.key("MT144", message, "metadata", "confidence")


def check_settings_of(documents: Documents, file: TaskFile, report: TaskReport) -> None:
    """Report settings that name what no document has: cluster key, lettered options, gold answers, wrong answers."""
    key, declared = file.cluster_key, file.metadata.confidence
    if key is not None and not any(key in document for document in documents):
        report.key("MT142", f"no document has `{key}`, so samples count as independent", "cluster_key")
    if declared is not None and declared.of == "option" and not any(one.get("choices") for one in documents):
        message = "no document has `choices`, whose letters would have probabilities"
        report.key("MT144", message, "metadata", "confidence", fix="write of: answer, or remove it")
    gold = {normalise(text): text for document in documents if (text := gold_text(document))}
    options = {normalise(text): text for document in documents for _, text in options_of(document)}
    for number, kind in enumerate(file.metadata.errors):
        for key, known, what in (("gold", gold, "gold answer"), ("answer", options, "option")):
            for field in (key, f"{key}_other_than"):
                for text in getattr(kind, field):
                    if known and normalise(text) not in known:
                        near = suggestion(text, known.values())
                        named = f"`errors[{number}].{field}` has {shown(text)}"
                        message = f"{named}, which is the {what} of no document{near}"
                        report.key("MT146", message, "metadata", "errors", number, field)

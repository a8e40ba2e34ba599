"""Rules for task files: the names in them exist and fit, groups end in tasks, settings name what
documents have.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from medtasks.answers import OptionLetterFilter
from medtasks.benchmarks.aggregations import scored_metrics
from medtasks.benchmarks.error_kinds import gold_text, name_problem
from medtasks.benchmarks.layout_checks import layouts_left_out
from medtasks.benchmarks.rows import Rows
from medtasks.benchmarks.variants import varied_rows
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import (
    TaskPackage,
    kind_of,
    owner_of,
    resolve,
    task_files,
    task_packages,
)
from medtasks.catalog.registry import (
    all_benchmarks,
    code_left_out,
    everything_left_out,
    filter_name,
    get_filter,
)
from medtasks.catalog.rubric import load_rubric, rubric_files
from medtasks.catalog.spec import read_installed, read_task
from medtasks.catalog.task_model import FunctionName, GroupFile, MetricEntry, TaskFile
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import Finding, failed, finding
from medtasks.core.schema import Keys, shown, suggestion, unknown
from medtasks.core.text import first_names
from medtasks.metrics.base import Metric
from medtasks.metrics.closed_answer import normalise
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.registry import get_metric
from medtasks.validate.documents import Documents, TaskReport, options_of


class Files:
    """Task and group files by name, at first those installed; each file is read once."""

    def __init__(self) -> None:
        self.known = dict(task_files())
        installed = set(self.known.values())
        self.read = functools.cache(
            lambda path: read_installed(path) if path in installed else read_task(path)
        )

    def benchmark_of(self, name: str) -> str:
        """The benchmark that a task or group names, or else the directory of its file: it may be
        too faulty.
        """
        path = self.known[name]
        metadata = self.read(path).content.get("metadata")
        named = metadata.get("benchmark") if isinstance(metadata, dict) else None
        return named if isinstance(named, str) else path.parents[kind_of(path) == "group"].name

    def everything_in(self, names: Iterable[str]) -> list[str]:
        """The tasks and groups ``names``, and those in the groups, at any depth; files may be
        faulty.
        """
        found = [name for name in names if name in self.known]
        for name in found:
            members = self.read(self.known[name]).content.get("task")
            for member in members if isinstance(members, list) else ():
                found += (
                    [member]
                    if isinstance(member, str) and member in self.known and member not in found
                    else []
                )
        return list(dict.fromkeys(found))


def check_packages(
    packages: Collection[TaskPackage], faulty: Collection[TaskPackage]
) -> list[Finding]:
    """Findings about ``packages``, or parts of them, that are left out; those with ``faulty`` files
    may show in their board layouts what is missing only for that.
    """
    owners = {package.owner for package in packages}
    left_out = [part for part in everything_left_out() if part.owner in owners]
    causes = {part.owner for part in left_out} | {package.owner for package in faulty}
    left_out += [
        part
        for package in packages
        if package.owner not in causes
        for part in layouts_left_out(package)
    ]
    return [
        finding(
            "MT150", one.owner, f"{one.part or 'the package'} is left out: {one.why}", one.place
        )
        for one in left_out
    ]


def check_metadata(
    file: TaskFile | GroupFile, known: Mapping[str, Path], report: TaskReport
) -> None:
    """Report the names in ``metadata`` that are unknown or cannot be used; ``known`` are all tasks
    and groups.
    """
    metadata, task, package = file.metadata, report.source, owner_of(report.source.path)
    benchmark = all_benchmarks().get(metadata.benchmark)
    known_names: dict[str, tuple[str, Collection[str]]] = {
        "compare_with": ("task or group", known),
        "rubrics": ("rubric", rubric_files()),
        "learned": ("learned metric", LEARNED),
    }
    if benchmark is not None:
        rates = (
            []
            if benchmark.scoring.errors is None
            else [rate.name for rate in benchmark.scoring.errors.rates]
        )
        pooled = [name for name in (*benchmark.scoring.pooled, *rates) if _metric(name)]
        known_names |= {
            "breakdowns": ("breakdown", benchmark.breakdowns),
            "pooled": ("pooled metric", pooled),
        }
    elif not code_left_out(package):
        known_names["benchmark"] = ("benchmark", all_benchmarks())
    for key, (what, names) in known_names.items():
        named = getattr(metadata, key) or ()
        for number, name in enumerate([named] if isinstance(named, str) else named):
            keys: Keys = ("metadata", key) if isinstance(named, str) else ("metadata", key, number)
            if name not in names:
                report.key("MT124", unknown(what, name, sorted(names)), *keys)
            elif what == "rubric":
                try:
                    load_rubric(name)
                except MedtasksError as error:
                    report.key("MT124", str(error), *keys, fix="")
    if metadata.compare_with == task.name:
        message = f"`metadata.compare_with` is {shown(task.name)}, this {task.kind} itself"
        report.key("MT113", message, "metadata", "compare_with", fix="name the plain one")
    for number, error_kind in enumerate(metadata.errors):
        if problem := name_problem(task.name, error_kind, package):
            message = f"error {shown(error_kind.name)} cannot be counted: {problem}"
            report.key("MT145", message, "metadata", "errors", number, "name")


def _metric(name: str) -> Metric | None:
    try:
        return get_metric(name)
    except MedtasksError:  # unknown, or a rubric that names it cannot be read
        return None


_GOLD_FIELDS = """
    abstention answer answers evidence expected expected_output explanation gold guesses ideal_response judge_rubric
    positive_response rationale reference reference_answer solution target visual_description
"""  # document fields that contain or give away the expected answer


def check_description(benchmark: Benchmark, report: TaskReport) -> None:
    """Report what a benchmark's description lacks: what is needed to cite, use and trust it."""
    publication = benchmark.publication
    texts = {
        "title": benchmark.title,
        "version": benchmark.data.version,
        "licence": publication.licence,
        "source": publication.source,
        "paper": publication.paper,
        "prepare": benchmark.data.prepare,
        "cluster": benchmark.cluster,
        "language": publication.language,
        "intended_use": publication.intended_use,
    }
    for field, text in texts.items():
        if not str(text).strip():
            message = f"benchmark {benchmark.name} does not state `{field}`, expected text"
            report.key("MT140", message, "metadata", "benchmark")
    for field in sorted(benchmark.visible_fields & {*_GOLD_FIELDS.split()}):
        message = f"`visible_fields` of benchmark {benchmark.name} has {field!r}, expected no field that gives the "
        report.key("MT215", f"{message}answer away", "metadata", "benchmark")


def import_named(name: str) -> Any:
    """The object that the dotted ``name`` refers to; raises `LookupError` with the reason.

    A task file may come from anywhere: it must not run a file of the current directory, or a module
    of Python itself.
    """
    package = name.partition(".")[0]
    guests = {one.module.partition(".")[0] for one in task_packages()}
    if package and package not in {"lmms_eval", *guests} and package not in _distributed():
        raise LookupError(f"no installed package has a module {shown(package)}")
    return resolve(name)


_distributed = functools.cache(packages_distributions)  # reads the files of every distribution


def check_functions(file: TaskFile, report: TaskReport) -> None:
    """Report every ``!function`` of a task file, its filters and its metrics that cannot be
    used.
    """
    if code_left_out(owner_of(report.source.path)):  # which `check_packages` reports once
        return
    for key, name in file:
        if isinstance(name, FunctionName) and (
            key != "process_docs" or file.metadata.varied is None
        ):
            _resolved(report, name, key)
    rows = task_rows(file)
    if rows is not None and rows.benchmark != file.metadata.benchmark in all_benchmarks():
        message = f"`process_docs` takes rows of {shown(rows.benchmark)}, expected {shown(file.metadata.benchmark)}"
        report.key("MT137", f"{message}, the task's benchmark", "process_docs")
    (pipeline,) = file.filter_list
    for position, step in enumerate(pipeline.filter):
        name, keys = step.function, ("filter_list", 0, "filter", position, "function")
        if not isinstance(name, FunctionName) or _resolved(report, name, *keys, method="apply"):
            try:
                get_filter(filter_name(name))
            except MedtasksError as error:
                report.key("MT124", str(error), *keys)
    for number, entry in enumerate(file.metric_list):
        _check_metric(entry, ("metric_list", number), report)
    _check_scored(file, report)
    if not failed(
        report.findings()
    ):  # else an error that this file shares with the task may be the cause
        try:
            varied_rows(file.task, file.metadata)
        except MedtasksError as error:
            report.key("MT143", str(error), "metadata", "compare_with")


def reads_letters(file: TaskFile) -> bool:
    """Whether one of the task's filters reads option letters: `OptionLetterFilter`, or a class made
    of it.
    """
    for step in file.filter_list[0].filter:
        with contextlib.suppress(MedtasksError):  # an unknown filter is a finding of its own
            if issubclass(get_filter(filter_name(step.function)).kind, OptionLetterFilter):
                return True
    return False


def task_rows(file: TaskFile) -> Rows | None:
    """The rows that ``process_docs`` names; None if it cannot be imported, or is a plain
    function.
    """
    try:
        # as this file says, not the installed one of this name
        rows = varied_rows(file.task, file.metadata) or import_named(file.process_docs)
    except (LookupError, MedtasksError):
        return None
    return rows if isinstance(rows, Rows) else None


def _resolved(report: TaskReport, name: str, *keys: str | int, method: str = "__call__") -> Any:
    """The object called ``name``; None if there is none, or it has no such method, which is
    reported.
    """
    try:
        found = import_named(name)
    except LookupError as error:
        report.key("MT120", f"{shown(str(name))} cannot be imported ({error})", *keys)
        return None
    if callable(getattr(found, method, None)):
        return found
    expected = (
        "a filter class with the method apply(responses, documents)"
        if method == "apply"
        else "a callable"
    )
    report.key("MT121", f"{shown(str(name))} is not {expected}", *keys)
    return None


def _check_metric(entry: MetricEntry, keys: Keys, report: TaskReport) -> None:
    metric, name, aggregation = None, entry.metric, entry.aggregation
    try:
        metric = get_metric(name)
    except MedtasksError as error:
        report.key("MT124", str(error), *keys, "metric")
    if metric is not None and entry.higher_is_better != metric.higher_is_better:
        message = f"`higher_is_better` of {name} is {entry.higher_is_better}, expected {metric.higher_is_better}"
        report.key("MT135", message, *keys, "higher_is_better")
    function = _resolved(report, aggregation, *keys, "aggregation")
    called = str(getattr(function, "__name__", name))
    of_a_metric = _metric(called) is not None or aggregation.startswith(
        "medtasks.benchmarks.aggregations."
    )
    if metric is not None and called != name and of_a_metric:
        message = f"metric {shown(name)} is aggregated as {called!r}, expected its own aggregation"
        report.key("MT134", message, *keys, "aggregation")


def _check_scored(file: TaskFile, report: TaskReport) -> None:
    """Report metrics that either `process_results` or ``metric_list`` lacks, if `scored_by` made
    the function.

    Of other functions, scores of the documents show what they lack (MT507).
    """
    listed = [entry.metric for entry in file.metric_list]
    try:
        scored = scored_metrics(import_named(file.process_results))
    except LookupError:  # reported as MT120
        return
    if scored is None or not all(map(_metric, listed)):  # a misspelt metric is reported as MT124
        return
    for number, name in enumerate(listed):
        if name not in scored:
            message = f"metric {shown(name)} is in metric_list, but `scored_by` of `process_results` does not name it"
            report.key(
                "MT147",
                message,
                "metric_list",
                number,
                "metric",
                fix="add it there, or remove it here",
            )
    for name in scored:
        if name not in listed:
            message = f"`scored_by` of `process_results` names metric {shown(name)}, which is not in metric_list"
            report.key("MT147", message, "process_results", fix="add it there", severity="warning")


def check_members(file: GroupFile, files: Files, report: TaskReport) -> None:
    """Report members of a group that are unknown, of another benchmark, or contain this group."""
    for number, member in enumerate(file.task):
        if member not in files.known:
            report.key("MT124", unknown("member", member, sorted(files.known)), "task", number)
            continue
        theirs = files.read(files.known[member]).file
        if theirs is not None and theirs.metadata.benchmark != file.metadata.benchmark:
            belongs = f"member {shown(member)} belongs to {shown(theirs.metadata.benchmark)}"
            message = f"{belongs}, expected {shown(file.metadata.benchmark)} "
            report.key("MT136", f"{message}like the group, since scores are pooled", "task", number)
        if file.group in files.everything_in([member]):
            message = (
                f"member {shown(member)} contains {file.group!r}, expected groups that end in tasks"
            )
            report.key("MT133", message, "task", number)


def check_settings(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    """Report settings that lack what they need in the file or in ``documents``, if there are any:
    the cluster key, the metric and the options of ``metadata.confidence``, the answers that kinds
    of error name.
    """
    key, declared = file.cluster_key, file.metadata.confidence
    if key is None:
        report.key(
            "MT142", "`cluster_key` is missing, so samples count as independent", "cluster_key"
        )
    elif documents and not any(key in document for document in documents):
        report.key(
            "MT142", f"no document has `{key}`, so samples count as independent", "cluster_key"
        )
    if declared is not None:
        names = [entry.metric for entry in file.metric_list]
        problem = (
            "" if declared.correct in names else f"not in metric_list ({first_names(names, 8)})"
        )
        with contextlib.suppress(MedtasksError):  # an unknown metric is a finding of its own
            problem = problem or (
                "" if get_metric(declared.correct).width == 2 else "not 0 or 1 for an answer"
            )
        if problem and not failed(
            report.findings()
        ):  # else the metric may be in the list, misspelt
            message = f"`confidence.correct` is {shown(declared.correct)}, which is {problem}"
            report.key("MT144", message, "metadata", "confidence")
        if (
            documents
            and declared.of == "option"
            and not any(one.get("choices") for one in documents)
        ):
            message = "no document has `choices`, whose letters would have probabilities"
            report.key(
                "MT144", message, "metadata", "confidence", fix="write of: answer, or remove it"
            )
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

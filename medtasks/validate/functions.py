"""Rules for what task files name in code: functions, rows, filters and metrics exist and fit each
other.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from typing import Any

from medtasks.answers import OptionLetterFilter
from medtasks.benchmarks.aggregations import scored_metrics, tasks_scored_by
from medtasks.benchmarks.rows import Rows
from medtasks.benchmarks.variants import varied_rows
from medtasks.catalog.contents import owner_of, resolve, task_packages
from medtasks.catalog.harness_keys import MetricEntry
from medtasks.catalog.key_types import FunctionName
from medtasks.catalog.registry import all_benchmarks, code_left_out, filter_name, get_filter
from medtasks.catalog.task_model import TaskFile
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import failed
from medtasks.core.schema import Keys, shown
from medtasks.metrics.base import Metric
from medtasks.metrics.registry import get_metric
from medtasks.validate.report import TaskReport


def check_functions(file: TaskFile, report: TaskReport) -> None:
    """Report every ``!function`` of a task file, its filters and its metrics that cannot be
    used.
    """
    if code_left_out(owner_of(report.source.path)):  # which `check_packages` reports once
        return
    for key, name in file:
        are_rows_varied = key == "process_docs" and file.metadata.varied is not None
        if isinstance(name, FunctionName) and not are_rows_varied:
            _import_callable(report, name, key)
    _check_rows(file, report)
    _check_filters(file, report)
    for number, entry in enumerate(file.metric_list):
        _check_metric(entry, ("metric_list", number), report)
    _check_scored(file, report)
    if not failed(report.findings()):  # an error may be one of the task that is varied, too
        try:
            varied_rows(file.task, file.metadata)
        except MedtasksError as error:
            report.on_key("MT143", str(error), "metadata", "compare_with")


def import_named(name: str) -> Any:
    """The object that the dotted ``name`` refers to; raises `LookupError` with the reason.

    A task file may come from anywhere: it must not run a file of the current directory, or a module
    of Python itself.
    """
    top_level = name.partition(".")[0]
    if top_level and not _is_installed(top_level):
        raise LookupError(f"no installed package has a module {shown(top_level)}")
    return resolve(name)


def _is_installed(top_level: str) -> bool:
    """Whether a top-level module is a package's."""
    if top_level == "lmms_eval":
        return True
    task_modules = {package.module.partition(".")[0] for package in task_packages()}
    return top_level in task_modules or top_level in _distributed_modules()


_distributed_modules = functools.cache(packages_distributions)  # reads every distribution's files


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


def reads_letters(file: TaskFile) -> bool:
    """Whether one of the task's filters reads option letters: `OptionLetterFilter`, or a subclass
    of it.
    """
    for step in file.filter_list[0].filter:
        with contextlib.suppress(MedtasksError):  # an unknown filter is a finding of its own
            if issubclass(get_filter(filter_name(step.function)).kind, OptionLetterFilter):
                return True
    return False


def is_metric(name: str) -> bool:
    """Whether a metric of this name exists and can be used."""
    return _usable_metric(name) is not None


def _usable_metric(name: str) -> Metric | None:
    try:
        return get_metric(name)
    except MedtasksError:  # unknown, or a rubric that names it cannot be read
        return None


def _import_callable(
    report: TaskReport, name: str, *keys: str | int, method: str = "__call__"
) -> Any:
    """The object called ``name``; None if there is none, or it has no such method, which is
    reported.
    """
    try:
        imported = import_named(name)
    except LookupError as error:
        report.on_key("MT120", f"{shown(str(name))} cannot be imported ({error})", *keys)
        return None
    if callable(getattr(imported, method, None)):
        return imported
    expected = "a callable"
    if method == "apply":
        expected = "a filter class with the method apply(responses, documents)"
    report.on_key("MT121", f"{shown(str(name))} is not {expected}", *keys)
    return None


def _check_rows(file: TaskFile, report: TaskReport) -> None:
    """Report rows of another benchmark than the task's."""
    rows, benchmark = task_rows(file), file.metadata.benchmark
    if rows is not None and benchmark in all_benchmarks() and rows.benchmark != benchmark:
        takes = f"`process_docs` takes rows of {shown(rows.benchmark)}"
        message = f"{takes}, expected {shown(benchmark)}, the task's benchmark"
        report.on_key("MT137", message, "process_docs")


def _check_filters(file: TaskFile, report: TaskReport) -> None:
    """Report filters that cannot be imported, or are not registered."""
    (pipeline,) = file.filter_list
    for position, step in enumerate(pipeline.filter):
        name = step.function
        keys = ("filter_list", 0, "filter", position, "function")
        if isinstance(name, FunctionName) and not _import_callable(
            report, name, *keys, method="apply"
        ):
            continue
        try:
            get_filter(filter_name(name))
        except MedtasksError as error:
            report.on_key("MT124", str(error), *keys)


def _check_metric(entry: MetricEntry, keys: Keys, report: TaskReport) -> None:
    """Report an unknown metric, a reversed direction, and the aggregation of another metric."""
    metric, name, aggregation = None, entry.metric, entry.aggregation
    try:
        metric = get_metric(name)
    except MedtasksError as error:
        report.on_key("MT124", str(error), *keys, "metric")
    if metric is not None and entry.higher_is_better != metric.higher_is_better:
        states = f"`higher_is_better` of {name} is {entry.higher_is_better}"
        message = f"{states}, expected {metric.higher_is_better}"
        report.on_key("MT135", message, *keys, "higher_is_better")
    function = _import_callable(report, aggregation, *keys, "aggregation")
    aggregated = str(getattr(function, "__name__", name))
    is_ours = aggregation.startswith("medtasks.benchmarks.aggregations.")
    if metric is not None and aggregated != name and (is_ours or is_metric(aggregated)):
        message = (
            f"metric {shown(name)} is aggregated as {aggregated!r}, expected its own aggregation"
        )
        report.on_key("MT134", message, *keys, "aggregation")


def _check_scored(file: TaskFile, report: TaskReport) -> None:
    """Report metrics in ``metric_list`` that do not fit a `process_results` that `scored_by` made.

    What other functions lack is found by scoring the documents (MT507).
    """
    metrics = [entry.metric for entry in file.metric_list]
    try:
        function = import_named(file.process_results)
    except LookupError:  # reported as MT120
        return
    names = scored_metrics(function)
    if names is None or not all(map(is_metric, metrics)):  # a misspelt metric is MT124
        return
    if names:
        _check_named(metrics, names, report)
    else:
        _check_shared(file.task, metrics, function, report)


def _check_named(metrics: Sequence[str], names: Sequence[str], report: TaskReport) -> None:
    """Report metrics that either ``metric_list`` or the names passed to `scored_by` lack."""
    for number, metric in enumerate(metrics):
        if metric not in names:
            message = (
                f"metric {shown(metric)} is in metric_list, "
                "but `scored_by` of `process_results` does not name it"
            )
            fix = "add it there, or remove it here"
            report.on_key("MT147", message, "metric_list", number, "metric", fix=fix)
    for metric in names:
        if metric not in metrics:
            named = f"`scored_by` of `process_results` names metric {shown(metric)}"
            message = f"{named}, which is not in metric_list"
            report.on_key(
                "MT147", message, "process_results", fix="add it there", severity="warning"
            )


def _check_shared(task: str, metrics: Sequence[str], function: object, report: TaskReport) -> None:
    """Report a task that shares its `scored_by()` with one that lists other metrics.

    medtasks knows which task it scores, but lmms-eval alone does not.
    """
    for name, spec in tasks_scored_by(function).items():
        if name != task and set(spec.metrics) != set(metrics):
            message = (
                f"metric_list is not that of task {name}, which has the same `process_results`, "
                "so lmms-eval without medtasks cannot score either"
            )
            fix = "give this task a `scored_by()` of its own"
            report.on_key("MT147", message, "process_results", fix=fix, severity="warning")
            return

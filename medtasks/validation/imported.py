"""The functions that a task file names: can they be imported, and can they do what they are named for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from medtasks.benchmarks.documents import Rows
from medtasks.errors import MedtasksError, first_line
from medtasks.filters import filter_class
from medtasks.metrics import Metric
from medtasks.metrics.lookup import get_metric
from medtasks.spec import filter_name
from medtasks.validation.codes import shown
from medtasks.validation.findings import Finding
from medtasks.validation.packages import is_told, of_broken_package
from medtasks.validation.task_keys import AGGREGATIONS
from medtasks.validation.task_text import TaskText
from medtasks.validation.yaml_text import FunctionName, Keys

__all__ = ["check_functions", "imported", "metric_called", "rows_of"]

OWN_AGGREGATIONS = "medtasks.benchmarks.aggregations"
_CALLED = ("process_docs", "doc_to_visual", "doc_to_text", "doc_to_messages", "doc_to_target", "process_results")


def imported(name: str) -> Any:
    """What the dotted ``name`` stands for.

    Raises:
        LookupError: it cannot be imported; says why.
    """
    module, _, attribute = name.rpartition(".")
    if not module or not attribute or name.startswith("."):
        raise LookupError("it is no dotted name such as package.module.function")
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # another package's code may do anything when it is imported
        said = " ".join(first_line(error).split())[:300]
        raise LookupError(said.rstrip(".")) from error


def rows_of(task: TaskText) -> Rows | None:
    """The rows that ``process_docs`` names; None where it is missing, broken, or a plain function."""
    name = task.content.get("process_docs")
    if not isinstance(name, FunctionName):
        return None
    try:
        rows = imported(name)
    except LookupError:
        return None
    return rows if isinstance(rows, Rows) else None


def metric_called(name: str) -> Metric | None:
    """The metric of that name; None where there is none, or the rubrics that name some cannot be read."""
    try:
        return get_metric(name)
    except MedtasksError:
        return None


def check_functions(task: TaskText) -> Iterator[Finding]:
    """Findings about every ``!function`` of a task file, its filters and its metrics.

    None of a package whose code cannot be used at all, which is said once (:mod:`medtasks.validation.packages`).
    """
    if of_broken_package(task.path):
        return
    for key in (*_CALLED, "doc_to_choice"):
        value = task.content.get(key)
        if not isinstance(value, FunctionName):
            continue
        try:
            if not callable(imported(value)):
                yield _useless(task, value, "something that can be called", key)
        except LookupError as error:
            yield _missing(task, value, error, key)
    rows, benchmark = rows_of(task), task.block("metadata").get("benchmark")
    if rows is not None and isinstance(benchmark, str) and rows.benchmark != benchmark:
        message = f"`process_docs` takes rows of {shown(rows.benchmark)}, expected those of {shown(benchmark)}"
        yield task.finding("MT137", f"{message}, the task's benchmark; correct one of them.", "process_docs")
    for number, entry in task.entries("filter_list"):
        steps = entry.get("filter") if isinstance(entry, dict) else None
        for position, step in enumerate(steps if isinstance(steps, list) else []):
            if isinstance(step, dict) and "function" in step:
                keys = ("filter_list", number, "filter", position, "function")
                yield from _filter(task, step["function"], keys)
    for number, entry in task.entries("metric_list"):
        if isinstance(entry, dict):
            yield from _metric(task, entry, number)


def _missing(task: TaskText, name: str, error: LookupError, *keys: str | int) -> Finding:
    message = f"{shown(str(name))} cannot be imported ({error}); correct the name, or install its package."
    return task.finding("MT120", message, *keys)


def _useless(task: TaskText, name: str, expected: str, *keys: str | int) -> Finding:
    return task.finding("MT121", f"{shown(str(name))} is not {expected}; name what is.", *keys)


def _filter(task: TaskText, name: Any, keys: Keys) -> Iterator[Finding]:
    if not isinstance(name, str):
        yield task.finding("MT109", f"the filter is {shown(name)}, expected `!function` with its class.", *keys)
        return
    if isinstance(name, FunctionName):
        try:
            if not callable(getattr(imported(name), "apply", None)):
                yield _useless(task, name, "a filter class with the method apply(responses, documents)", *keys)
                return
        except LookupError as error:
            yield _missing(task, name, error, *keys)
            return
    try:
        filter_class(filter_name(name))
    except MedtasksError as error:
        if is_told(task.path, f"filter {name.rpartition('.')[2]}"):
            return
        yield task.finding("MT123", f"{error} Register it in the package's PLUGIN, or name a known one.", *keys)


def _metric(task: TaskText, entry: dict[str, Any], number: int) -> Iterator[Finding]:
    name, aggregation, higher = (entry.get(key) for key in ("metric", "aggregation", "higher_is_better"))
    metric = metric_called(name) if isinstance(name, str) else None
    keys = ("metric_list", number)
    if metric is None and isinstance(name, str) and not is_told(task.path, f"metric {name}"):
        message = f"metric {shown(name)} is unknown; register it in the package's PLUGIN, or name a known one."
        yield task.finding("MT124", message, *keys, "metric")
    if metric is not None and isinstance(higher, bool) and higher != metric.higher_is_better:
        message = f"`higher_is_better` of {name} is {higher}, expected {metric.higher_is_better}; correct it."
        yield task.finding("MT135", message, *keys, "higher_is_better")
    if isinstance(aggregation, FunctionName):
        yield from _aggregation(task, aggregation, name, (*keys, "aggregation"))
    elif isinstance(aggregation, str) and aggregation not in AGGREGATIONS:
        message = f"aggregation {shown(aggregation)} is unknown, expected one of {', '.join(sorted(AGGREGATIONS))}"
        yield task.finding("MT125", f"{message}, or `!function`; correct it.", *keys, "aggregation")


def _aggregation(task: TaskText, name: FunctionName, metric: Any, keys: Keys) -> Iterator[Finding]:
    try:
        function = imported(name)
    except LookupError as error:
        yield _missing(task, name, error, *keys)
        return
    if not callable(function):
        yield _useless(task, name, "something that can be called", *keys)
        return
    called = str(getattr(function, "__name__", ""))
    known = metric_called(called) is not None
    if is_told(task.path, f"metric {called}"):
        return
    if not known and name.startswith(OWN_AGGREGATIONS + "."):
        message = f"aggregation {shown(str(name))} is that of no known metric; register it, or correct the name."
        yield task.finding("MT125", message, *keys)
    elif known and isinstance(metric, str) and called != metric:
        message = f"metric {shown(metric)} is aggregated as {called!r}, expected its own aggregation; correct the name."
        yield task.finding("MT134", message, *keys)

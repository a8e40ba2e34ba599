"""Do the functions, filters, metrics, rubrics and tasks that a task file names exist, and do they fit?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.card_check import cards_left_out
from medtasks.benchmarks.declared_errors import name_problem
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.variants import varied_rows
from medtasks.catalog import once, owner_of, resolve, task_packages
from medtasks.errors import MedtasksError
from medtasks.filters import filter_class
from medtasks.metrics.base import Metric
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.registry import get_metric
from medtasks.packages import TaskPackage
from medtasks.registry import all_benchmarks, everything_left_out, filter_name
from medtasks.rubrics.rubric import load_rubric, rubric_names
from medtasks.schema import Keys, shown, unknown
from medtasks.spec import of_broken_package
from medtasks.task_model import AGGREGATIONS, GroupFile, MetricEntry, TaskFile
from medtasks.task_source import FunctionName, Place, TaskSource, kind_of, read_task
from medtasks.validation.findings import Finding, found, in_task


def validate_packages(packages: Collection[TaskPackage]) -> list[Finding]:
    """Findings about ``packages``, or parts of them, that are left out."""
    owners = {package.owner for package in packages}
    left_out = [part for part in everything_left_out() if part.owner in owners]
    causes = {part.owner for part in left_out}  # a layout may show a metric that is left out
    left_out += [part for package in packages if package.owner not in causes for part in cards_left_out(package)]
    return [
        found(
            "MT150",
            part.owner,
            f"{part.part or 'the package'} is left out: {part.why}",
            Place(Path(part.file), part.line or 1) if part.file else None,
        )
        for part in left_out
    ]


def is_reported(task: Path, part: str) -> bool:
    """Whether :func:`validate_packages` reports why ``part`` of a task file's package is missing."""
    package = owner_of(task)
    reported = any(one.owner == package.owner and one.part == part for one in everything_left_out())
    return not package.ours and reported


OWN_AGGREGATIONS = "medtasks.benchmarks.aggregations."
_CALLED = (
    "process_docs",
    "doc_to_visual",
    "doc_to_text",
    "doc_to_messages",
    "doc_to_target",
    "doc_to_choice",
    "process_results",
)
GOLD_FIELDS = frozenset(
    {
        "abstention",
        "answer",
        "answers",
        "evidence",
        "expected",
        "expected_output",
        "explanation",
        "gold",
        "guesses",
        "ideal_response",
        "judge_rubric",
        "positive_response",
        "rationale",
        "reference",
        "reference_answer",
        "solution",
        "target",
        "visual_description",
    }
)
"""Document fields that contain or give away the expected answer."""


def check_metadata(task: TaskSource, file: TaskFile | GroupFile, known: Mapping[str, Path]) -> Iterator[Finding]:
    """Findings about the names in ``metadata``; ``known`` are all tasks and groups with their files."""
    metadata, benchmark = file.metadata, all_benchmarks().get(file.metadata.benchmark)
    if benchmark is None and not of_broken_package(task.path):
        message = f"{unknown('benchmark', metadata.benchmark, sorted(all_benchmarks()))}; correct the name"
        yield in_task(task, "MT130", f"{message}, or install its package.", "metadata", "benchmark")
    partner = metadata.compare_with
    if partner is not None and partner not in known:
        message = f"{unknown('task or group', partner, sorted(known))}; correct the name."
        yield in_task(task, "MT131", message, "metadata", "compare_with")
    elif partner == task.name:
        message = f"`metadata.compare_with` is {shown(partner)}, this {task.kind} itself; name the plain one."
        yield in_task(task, "MT131", message, "metadata", "compare_with")
    for number, kind in enumerate(metadata.errors):
        if problem := name_problem(task.name, kind, owner_of(task.path)):
            message = f"error {shown(kind.name)} cannot be counted: {problem}."
            yield in_task(task, "MT145", message, "metadata", "errors", number, "name")
    lists: list[tuple[str, str, Collection[str]]] = [
        ("MT126", "rubrics", rubric_names()),
        ("MT129", "learned", LEARNED),
    ]
    if benchmark is not None:
        rates = [] if benchmark.errors is None else [rate.name for rate in benchmark.errors.rates]
        pooled = [name for name in (*benchmark.pooled, *rates) if _metric(name)]
        lists += [("MT127", "breakdowns", benchmark.breakdowns), ("MT128", "pooled", pooled)]
    for code, key, names in lists:
        for number, name in enumerate(getattr(metadata, key)):
            if name not in names:
                message = f"{unknown(key.removesuffix('s'), name, sorted(names))}; correct the name."
                yield in_task(task, code, message, "metadata", key, number)
            elif key == "rubrics":
                try:
                    load_rubric(name)
                except MedtasksError as error:
                    yield in_task(task, code, str(error), "metadata", key, number)


def _metric(name: str) -> Metric | None:
    try:
        return get_metric(name)
    except MedtasksError:  # unknown, or a rubric that names it cannot be read
        return None


def check_members(group: TaskSource, file: GroupFile, known: Mapping[str, Path]) -> Iterator[Finding]:
    """Findings about the members of a group: unknown, of another benchmark, or a group that contains this one."""
    for number, member in enumerate(file.task):
        if member not in known:
            message = f"{unknown('member', member, sorted(known))}; correct the name."
            yield in_task(group, "MT132", message, "task", number)
            continue
        theirs = read_task(known[member]).block("metadata").get("benchmark")
        if isinstance(theirs, str) and theirs != file.metadata.benchmark:
            message = f"member {shown(member)} belongs to {shown(theirs)}, expected {shown(file.metadata.benchmark)} "
            message += "like the group, since scores are pooled; move it to another."
            yield in_task(group, "MT136", message, "task", number)
        if group.name in everything_in([member], known):
            message = f"member {shown(member)} contains {group.name!r}, expected groups that end in tasks; remove one."
            yield in_task(group, "MT133", message, "task", number)


def everything_in(names: Sequence[str], known: Mapping[str, Path]) -> list[str]:
    """The tasks and groups ``names``, and those in the groups, at any depth; files may be faulty."""
    found = list(names)
    for name in found:
        if name in known and kind_of(known[name]) == "group":
            members = [one for one in read_task(known[name]).entries("task") if isinstance(one, str)]
            found += [member for member in dict.fromkeys(members) if member not in found]
    return found


def check_description(task: TaskSource, benchmark: Benchmark) -> Iterator[Finding]:
    """Findings about a benchmark's description: what is needed to cite, use and trust it."""
    keys = ("metadata", "benchmark")
    for code, fields in (
        ("MT140", ("title", "version", "licence", "source", "paper", "prepare", "cluster")),
        ("MT141", ("language", "intended_use")),
    ):
        for field in fields:
            if not str(getattr(benchmark, field)).strip():
                message = f"benchmark {benchmark.name} does not state `{field}`, expected text; add it to Benchmark."
                yield in_task(task, code, message, *keys)
    for field in sorted(benchmark.visible_fields & GOLD_FIELDS):
        message = f"`visible_fields` of benchmark {benchmark.name} has {field!r}, expected no field that gives the "
        yield in_task(task, "MT215", f"{message}answer away; remove it.", *keys)


def imported(name: str) -> Any:
    """The object that the dotted ``name`` refers to, imported from an installed package.

    A task file may come from anywhere: it must not run a file of the current directory, or a module of Python itself.

    Raises:
        LookupError: it cannot be imported, or is not in an installed package; the message has the reason.
    """
    module, _, attribute = name.rpartition(".")
    if not module or not attribute or name.startswith("."):
        raise LookupError("it is not a dotted name such as package.module.function")
    package = name.partition(".")[0]
    if not _is_installed(package):
        raise LookupError(f"no installed package has a module {shown(package)}")
    return resolve(name)


@once
def _is_installed(module: str) -> bool:
    tasks = (package.module.partition(".")[0] for package in task_packages())
    return module in ("lmms_eval", *tasks) or module in packages_distributions()


def check_functions(task: TaskSource, file: TaskFile) -> Iterator[Finding]:
    """Findings about every ``!function`` of a task file, its filters and its metrics.

    None if no code of its package can be used, which :func:`validate_packages` reports once.
    """
    if of_broken_package(task.path):
        return
    for key in _CALLED:
        name = getattr(file, key)
        if isinstance(name, FunctionName) and (unresolved := _unresolved(task, name, (key,), "a callable", callable)):
            yield unresolved
    try:
        varied_rows(file.task, file.metadata)
    except MedtasksError as error:
        yield in_task(task, "MT143", str(error), "metadata", "compare_with")
    rows = task_rows(file)
    if rows is not None and rows.benchmark != file.metadata.benchmark:
        message = f"`process_docs` takes rows of {shown(rows.benchmark)}, expected {shown(file.metadata.benchmark)}"
        yield in_task(task, "MT137", f"{message}, the task's benchmark; correct one of them.", "process_docs")
    for number, pipeline in enumerate(file.filter_list):
        for position, step in enumerate(pipeline.filter):
            yield from _filter(task, step.function, ("filter_list", number, "filter", position, "function"))
    for number, entry in enumerate(file.metric_list):
        yield from _metric_entry(task, entry, ("metric_list", number))


def task_rows(file: TaskFile) -> Rows | None:
    """The rows that ``process_docs`` names; None if it cannot be imported, or is a plain function."""
    try:
        rows = imported(file.process_docs)
        if varied := varied_rows(file.task, file.metadata):  # as this file says, not the installed one of this name
            return varied
    except (LookupError, MedtasksError):
        return None
    return rows if isinstance(rows, Rows) else None


def _unresolved(task: TaskSource, name: str, keys: Keys, expected: str, fits: Callable[[Any], bool]) -> Finding | None:
    try:
        if fits(imported(name)):
            return None
        return in_task(task, "MT121", f"{shown(str(name))} is not {expected}; name one.", *keys)
    except LookupError as error:
        message = f"{shown(str(name))} cannot be imported ({error}); correct the name, or install its package."
        return in_task(task, "MT120", message, *keys)


def _filter(task: TaskSource, name: str, keys: Keys) -> Iterator[Finding]:
    if isinstance(name, FunctionName):
        expected = "a filter class with the method apply(responses, documents)"
        if one := _unresolved(task, name, keys, expected, lambda found: callable(getattr(found, "apply", None))):
            yield one
            return
    try:
        filter_class(filter_name(name))
    except MedtasksError as error:
        if not is_reported(task.path, f"filter {name.rpartition('.')[2]}"):
            message = f"{error} Register it in the package's PLUGIN, or name a known one."
            yield in_task(task, "MT123", message, *keys)


def _metric_entry(task: TaskSource, entry: MetricEntry, keys: Keys) -> Iterator[Finding]:
    metric, name = _metric(entry.metric), entry.metric
    if metric is None and not is_reported(task.path, f"metric {name}"):
        message = f"metric {shown(name)} is unknown; register it in the package's PLUGIN, or name a known one."
        yield in_task(task, "MT124", message, *keys, "metric")
    if metric is not None and entry.higher_is_better != metric.higher_is_better:
        message = f"`higher_is_better` of {name} is {entry.higher_is_better}, expected {metric.higher_is_better}"
        yield in_task(task, "MT135", f"{message}; correct it.", *keys, "higher_is_better")
    keys = (*keys, "aggregation")
    if not isinstance(entry.aggregation, FunctionName):
        if entry.aggregation not in AGGREGATIONS:
            message = f"aggregation {shown(entry.aggregation)} is unknown, expected one of "
            yield in_task(task, "MT125", f"{message}{', '.join(sorted(AGGREGATIONS))}, or `!function`.", *keys)
        return
    if unresolved := _unresolved(task, entry.aggregation, keys, "a callable", callable):
        yield unresolved
        return
    called = str(getattr(imported(entry.aggregation), "__name__", ""))
    known = _metric(called) is not None
    if is_reported(task.path, f"metric {called}"):
        return
    if not known and entry.aggregation.startswith(OWN_AGGREGATIONS):
        message = f"aggregation {shown(str(entry.aggregation))} belongs to no known metric; register it, or correct it."
        yield in_task(task, "MT125", message, *keys)
    elif known and called != name:
        message = f"metric {shown(name)} is aggregated as {called!r}, expected its own aggregation; correct the name."
        yield in_task(task, "MT134", message, *keys)

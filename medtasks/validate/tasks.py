"""Rules for task and group files: the names in them exist and fit, and groups end in tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from medtasks.benchmarks.error_kinds import name_problem
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import owner_of
from medtasks.catalog.registry import all_benchmarks, code_left_out
from medtasks.catalog.rubric_files import load_rubric, rubric_files
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.errors import MedtasksError
from medtasks.core.schema import Keys, shown, unknown
from medtasks.metrics.registry import learned_metrics
from medtasks.validate.functions import is_metric
from medtasks.validate.report import TaskReport
from medtasks.validate.task_files import FileIndex


def check_metadata(
    file: TaskFile | GroupFile, paths: Mapping[str, Path], report: TaskReport
) -> None:
    """Report the names in ``metadata`` that are unknown or cannot be used.

    Args:
        file: the task or group file.
        paths: the files of all tasks and groups, by name.
        report: the findings on this file.
    """
    package = owner_of(report.source.path)
    _check_names(file, _allowed_names(file, paths, package), report)
    _check_compared_task(file, report)
    _check_error_names(file, package, report)


def _check_names(
    file: TaskFile | GroupFile, allowed_names: Mapping[str, _AllowedNames], report: TaskReport
) -> None:
    """Report names in ``metadata`` that do not exist, and rubrics that cannot be loaded."""
    for key, allowed in allowed_names.items():
        for name, keys in _names_at(key, getattr(file.metadata, key)):
            if name not in allowed.names:
                message = unknown(allowed.noun, name, sorted(allowed.names))
                report.on_key("MT124", message, *keys)
            elif key == "rubrics":
                _check_rubric(name, keys, report)


def _check_compared_task(file: TaskFile | GroupFile, report: TaskReport) -> None:
    """Report a task or group that is compared with itself."""
    task = report.source
    if file.metadata.compare_with == task.name:
        message = f"`metadata.compare_with` is {shown(task.name)}, this {task.kind} itself"
        report.on_key("MT113", message, "metadata", "compare_with", fix="name the plain one")


def _check_error_names(
    file: TaskFile | GroupFile, package: TaskPackage, report: TaskReport
) -> None:
    """Report kinds of errors that cannot be counted under their names."""
    for number, error_kind in enumerate(file.metadata.errors):
        problem = name_problem(report.source.name, error_kind, package)
        if problem:
            message = f"error {shown(error_kind.name)} cannot be counted: {problem}"
            report.on_key("MT145", message, "metadata", "errors", number, "name")


@dataclass(frozen=True)
class _AllowedNames:
    """The names that exist for a key of ``metadata``, and the ``noun`` messages use for one."""

    noun: str
    names: Collection[str]


def _allowed_names(
    file: TaskFile | GroupFile, paths: Mapping[str, Path], package: TaskPackage
) -> dict[str, _AllowedNames]:
    """The names that each key of ``metadata`` may have.

    Keys of a benchmark that is unknown, or whose code was left out, are absent.
    """
    allowed = {
        "compare_with": _AllowedNames("task or group", paths),
        "rubrics": _AllowedNames("rubric", rubric_files()),
        "learned": _AllowedNames("learned metric", learned_metrics()),
    }
    benchmark = all_benchmarks().get(file.metadata.benchmark)
    if benchmark is not None:
        allowed["breakdowns"] = _AllowedNames("breakdown", benchmark.breakdowns)
        allowed["pooled"] = _AllowedNames("pooled metric", _pooled_metrics(benchmark))
    elif not code_left_out(package):
        allowed["benchmark"] = _AllowedNames("benchmark", all_benchmarks())
    return allowed


def _pooled_metrics(benchmark: Benchmark) -> list[str]:
    """The pooled metrics and error rates of a benchmark that are registered as metrics."""
    scoring = benchmark.scoring
    pooled = list(scoring.pooled)
    if scoring.errors is not None:
        pooled += [rate.name for rate in scoring.errors.rates]
    return [name for name in pooled if is_metric(name)]


def _names_at(key: str, value: str | Iterable[str] | None) -> Iterator[tuple[str, Keys]]:
    """Each name in a value of ``metadata``, which is a name or a list of names, with its keys."""
    if isinstance(value, str):
        yield value, ("metadata", key)
        return
    for number, name in enumerate(value or ()):
        yield name, ("metadata", key, number)


def _check_rubric(name: str, keys: Keys, report: TaskReport) -> None:
    """Report a rubric whose file cannot be loaded."""
    try:
        load_rubric(name)
    except MedtasksError as error:
        report.on_key("MT124", str(error), *keys, fix="")


_GOLD_FIELDS = frozenset(
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


def check_description(benchmark: Benchmark, report: TaskReport) -> None:
    """Report missing facts about a benchmark, and gold fields that its prompts may show."""
    _check_facts(benchmark, report)
    _check_visible_fields(benchmark, report)


def _check_facts(benchmark: Benchmark, report: TaskReport) -> None:
    """Report facts that users need to cite, run and interpret a benchmark, but that it lacks."""
    publication = benchmark.publication
    facts = {
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
    for field, text in facts.items():
        if not str(text).strip():
            message = f"benchmark {benchmark.name} does not state `{field}`, expected text"
            report.on_key("MT140", message, "metadata", "benchmark")


def _check_visible_fields(benchmark: Benchmark, report: TaskReport) -> None:
    """Report document fields that prompts may show although they contain the answer."""
    for field in sorted(benchmark.visible_fields & _GOLD_FIELDS):
        has = f"`visible_fields` of benchmark {benchmark.name} has {field!r}"
        message = f"{has}, expected no field that gives the answer away"
        report.on_key("MT215", message, "metadata", "benchmark")


def check_members(file: GroupFile, index: FileIndex, report: TaskReport) -> None:
    """Report members of a group that are unknown, of another benchmark, or contain this group."""
    for number, name in enumerate(file.task):
        if name not in index.paths:
            report.on_key("MT124", unknown("member", name, sorted(index.paths)), "task", number)
            continue
        _check_member_benchmark(file, number, index, report)
        if file.group in index.with_members([name]):
            contains = f"member {shown(name)} contains {file.group!r}"
            message = f"{contains}, expected groups that end in tasks"
            report.on_key("MT133", message, "task", number)


def _check_member_benchmark(
    file: GroupFile, number: int, index: FileIndex, report: TaskReport
) -> None:
    """Report a member whose file names another benchmark than the group's."""
    name, benchmark = file.task[number], file.metadata.benchmark
    member = index.read(index.paths[name]).file
    if member is not None and member.metadata.benchmark != benchmark:
        belongs = f"member {shown(name)} belongs to {shown(member.metadata.benchmark)}"
        expected = f"expected {shown(benchmark)} like the group, since scores are pooled"
        report.on_key("MT136", f"{belongs}, {expected}", "task", number)

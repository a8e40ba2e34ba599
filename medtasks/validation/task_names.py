"""Names that a task file gives in its metadata, and members of groups: is there anything of that name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from medtasks.benchmarks.base import Benchmark
from medtasks.errors import MedtasksError, UsageError
from medtasks.judge.rubric import load_rubric, rubric_names
from medtasks.metrics.learned import LEARNED
from medtasks.registry import all_benchmarks, get_benchmark
from medtasks.validation.codes import shown, suggestion
from medtasks.validation.findings import Finding
from medtasks.validation.imported import metric_called
from medtasks.validation.packages import of_broken_package
from medtasks.validation.task_text import TaskText, read_task

__all__ = ["benchmark_of", "check_circles", "check_description", "check_members", "check_metadata"]

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
"""Document fields that hold, or give away, what should be answered."""


def benchmark_of(task: TaskText) -> Benchmark | None:
    """The benchmark that the metadata name; None where it is missing or unknown."""
    name = task.block("metadata").get("benchmark")
    try:
        return get_benchmark(name) if isinstance(name, str) else None
    except UsageError:
        return None


def check_metadata(task: TaskText, known: Mapping[str, Path]) -> Iterator[Finding]:
    """Findings about the names in ``metadata``; ``known`` are all tasks and groups with their files."""
    metadata, benchmark = task.block("metadata"), benchmark_of(task)
    name, partner = metadata.get("benchmark"), metadata.get("compare_with")
    if isinstance(name, str) and benchmark is None and not of_broken_package(task.path):
        message = _unknown("benchmark", name, all_benchmarks()).replace("; ", "; install its package, or ")
        yield task.finding("MT130", message, "metadata", "benchmark")
    if isinstance(partner, str) and partner not in known:
        yield task.finding("MT131", _unknown("task or group", partner, known), "metadata", "compare_with")
    elif isinstance(partner, str) and partner == task.name:
        message = f"`metadata.compare_with` is {shown(partner)}, this {task.kind} itself; name the plain one."
        yield task.finding("MT131", message, "metadata", "compare_with")
    yield from _listed(task, "rubrics", "MT126", rubric_names())
    yield from _broken_rubrics(task)
    yield from _listed(task, "learned", "MT129", LEARNED)
    if benchmark is not None:
        yield from _listed(task, "breakdowns", "MT127", benchmark.breakdowns)
        yield from _listed(task, "pooled", "MT128", {one for one in benchmark.pooled if metric_called(one)})


def _broken_rubrics(task: TaskText) -> Iterator[Finding]:
    values = task.block("metadata").get("rubrics")
    for number, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, str) and value in rubric_names():
            try:
                load_rubric(value)
            except MedtasksError as error:
                yield task.finding("MT126", str(error), "metadata", "rubrics", number)


def _listed(task: TaskText, key: str, code: str, known: Iterable[str]) -> Iterator[Finding]:
    names = sorted(known)
    values = task.block("metadata").get(key)
    for number, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, str) and value not in names:
            yield task.finding(code, _unknown(key.removesuffix("s"), value, names), "metadata", key, number)


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "") or "none"
    return f"{kind} {shown(name)} is unknown{suggestion(name, names)}, there are {some}; correct the name."


def check_members(group: TaskText, known: Mapping[str, Path]) -> Iterator[Finding]:
    """Findings about the members of a group."""
    benchmark = group.block("metadata").get("benchmark")
    for number, member in group.entries("task"):
        if not isinstance(member, str):
            continue
        if member not in known:
            yield group.finding("MT132", _unknown("member", member, known), "task", number)
            continue
        theirs = read_task(known[member]).block("metadata").get("benchmark")
        if isinstance(theirs, str) and theirs != benchmark:
            message = f"member {shown(member)} belongs to {shown(theirs)}, expected {shown(benchmark)} like the group"
            yield group.finding("MT136", f"{message}, since scores are pooled; move it to another.", "task", number)


def check_circles(group: TaskText, known: Mapping[str, Path]) -> Iterator[Finding]:
    """Findings about groups that hold themselves, directly or through others."""
    for number, member in group.entries("task"):
        if isinstance(member, str) and _leads_to(member, group, known):
            message = (
                f"member {shown(member)} holds {group.name!r} again, expected groups that end in tasks; remove one."
            )
            yield group.finding("MT133", message, "task", number)


def _leads_to(start: str, group: TaskText, known: Mapping[str, Path]) -> bool:
    waiting, met = [start], set[str]()
    while waiting:
        name = waiting.pop()
        if name == group.name:
            return True
        if name in met or name not in known:
            continue
        met.add(name)
        text = read_task(known[name])
        if text.kind == "group":
            waiting += [member for _, member in text.entries("task") if isinstance(member, str)]
    return False


def check_description(task: TaskText, benchmark: Benchmark) -> Iterator[Finding]:
    """Findings about what a benchmark says of itself: enough to cite it, to be allowed to use it, and to trust it."""
    keys = ("metadata", "benchmark")
    for field in ("title", "version", "licence", "source", "paper", "prepare", "cluster"):
        if not str(getattr(benchmark, field, "(not there)")).strip():
            message = f"benchmark {benchmark.name} has an empty `{field}`, expected a text; state it in its Benchmark."
            yield task.finding("MT140", message, *keys)
    for field in ("language", "intended_use"):
        if not str(getattr(benchmark, field, "")).strip():
            message = f"benchmark {benchmark.name} does not state `{field}`; state it in its Benchmark."
            yield task.finding("MT141", message, *keys)
    for field in sorted(benchmark.visible_fields & GOLD_FIELDS):
        message = f"`visible_fields` of benchmark {benchmark.name} holds {field!r}, expected no field that gives the "
        yield task.finding("MT215", f"{message}answer away; remove it.", *keys)

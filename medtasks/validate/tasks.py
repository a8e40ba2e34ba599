"""Rules for task and group files: the names in them exist and fit, groups end in tasks, and
settings name what documents have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from medtasks.benchmarks.error_kinds import gold_text, name_problem
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import owner_of
from medtasks.catalog.registry import all_benchmarks, code_left_out
from medtasks.catalog.rubric_files import load_rubric, rubric_files
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import failed
from medtasks.core.schema import Keys, shown, suggestion, unknown
from medtasks.core.text import first_names
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.normalisation import normalise
from medtasks.metrics.registry import get_metric
from medtasks.validate.functions import is_metric
from medtasks.validate.options import options_of
from medtasks.validate.report import Documents, TaskReport
from medtasks.validate.task_files import FileIndex


def check_metadata(
    file: TaskFile | GroupFile, paths: Mapping[str, Path], report: TaskReport
) -> None:
    """Report the names in ``metadata`` that are unknown or cannot be used; ``paths`` has all tasks
    and groups.
    """
    metadata, task, package = file.metadata, report.source, owner_of(report.source.path)
    for key, (kind, allowed) in _allowed_names(file, paths, package).items():
        for name, keys in _names_at(key, getattr(metadata, key)):
            if name not in allowed:
                report.on_key("MT124", unknown(kind, name, sorted(allowed)), *keys)
            elif kind == "rubric":
                _check_rubric(name, keys, report)
    if metadata.compare_with == task.name:
        message = f"`metadata.compare_with` is {shown(task.name)}, this {task.kind} itself"
        report.on_key("MT113", message, "metadata", "compare_with", fix="name the plain one")
    for number, error_kind in enumerate(metadata.errors):
        problem = name_problem(task.name, error_kind, package)
        if problem:
            message = f"error {shown(error_kind.name)} cannot be counted: {problem}"
            report.on_key("MT145", message, "metadata", "errors", number, "name")


def _allowed_names(
    file: TaskFile | GroupFile, paths: Mapping[str, Path], package: TaskPackage
) -> dict[str, tuple[str, Collection[str]]]:
    """By key of ``metadata``: what its names are called, and those that exist."""
    allowed: dict[str, tuple[str, Collection[str]]] = {
        "compare_with": ("task or group", paths),
        "rubrics": ("rubric", rubric_files()),
        "learned": ("learned metric", LEARNED),
    }
    benchmark = all_benchmarks().get(file.metadata.benchmark)
    if benchmark is not None:
        scoring = benchmark.scoring
        pooled = list(scoring.pooled)
        if scoring.errors is not None:
            pooled += [rate.name for rate in scoring.errors.rates]
        allowed["breakdowns"] = ("breakdown", benchmark.breakdowns)
        allowed["pooled"] = ("pooled metric", list(filter(is_metric, pooled)))
    elif not code_left_out(package):
        allowed["benchmark"] = ("benchmark", all_benchmarks())
    return allowed


def _names_at(key: str, value: str | Iterable[str] | None) -> Iterator[tuple[str, Keys]]:
    """Each name in a value of ``metadata``, which is a name or a list of names, with its keys."""
    if isinstance(value, str):
        yield value, ("metadata", key)
        return
    for number, name in enumerate(value or ()):
        yield name, ("metadata", key, number)


def _check_rubric(name: str, keys: Keys, report: TaskReport) -> None:
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
    """Report what a benchmark lacks to be cited, used and trusted, and gold fields that it lets prompts
    show.
    """
    publication = benchmark.publication
    description = {
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
    for field, text in description.items():
        if not str(text).strip():
            message = f"benchmark {benchmark.name} does not state `{field}`, expected text"
            report.on_key("MT140", message, "metadata", "benchmark")
    for field in sorted(benchmark.visible_fields & _GOLD_FIELDS):
        has = f"`visible_fields` of benchmark {benchmark.name} has {field!r}"
        message = f"{has}, expected no field that gives the answer away"
        report.on_key("MT215", message, "metadata", "benchmark")


def check_members(file: GroupFile, index: FileIndex, report: TaskReport) -> None:
    """Report members of a group that are unknown, of another benchmark, or contain this group."""
    benchmark = file.metadata.benchmark
    for number, name in enumerate(file.task):
        if name not in index.paths:
            report.on_key("MT124", unknown("member", name, sorted(index.paths)), "task", number)
            continue
        member = index.read(index.paths[name]).file
        if member is not None and member.metadata.benchmark != benchmark:
            belongs = f"member {shown(name)} belongs to {shown(member.metadata.benchmark)}"
            expected = f"expected {shown(benchmark)} like the group, since scores are pooled"
            report.on_key("MT136", f"{belongs}, {expected}", "task", number)
        if file.group in index.with_members([name]):
            contains = f"member {shown(name)} contains {file.group!r}"
            message = f"{contains}, expected groups that end in tasks"
            report.on_key("MT133", message, "task", number)


def check_settings(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    """Report settings that lack what they need in the file or, if there are any, in
    ``documents``.
    """
    _check_cluster_key(file, documents, report)
    _check_confidence(file, documents, report)
    _check_error_answers(file, documents, report)


def _check_cluster_key(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    key = file.cluster_key
    if key is None:
        message = "`cluster_key` is missing, so samples count as independent"
        report.on_key("MT142", message, "cluster_key")
    elif documents and not any(key in document for document in documents):
        message = f"no document has `{key}`, so samples count as independent"
        report.on_key("MT142", message, "cluster_key")


def _check_confidence(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    """Report a metric that ``metadata.confidence`` cannot use, and options that no document has."""
    confidence = file.metadata.confidence
    if confidence is None:
        return
    metrics = [entry.metric for entry in file.metric_list]
    problem = _correctness_problem(confidence.correct, metrics)
    # an error may be that the metric is in the list, but misspelt
    if problem and not failed(report.findings()):
        message = f"`confidence.correct` is {shown(confidence.correct)}, which is {problem}"
        report.on_key("MT144", message, "metadata", "confidence")
    asks_options = confidence.of == "option"
    if documents and asks_options and not any(document.get("choices") for document in documents):
        message = "no document has `choices`, whose letters would have probabilities"
        fix = "write of: answer, or remove it"
        report.on_key("MT144", message, "metadata", "confidence", fix=fix)


def _correctness_problem(name: str, metrics: Collection[str]) -> str:
    """Why a metric does not say whether an answer is correct; an empty string if it does."""
    if name not in metrics:
        return f"not in metric_list ({first_names(metrics, 8)})"
    with contextlib.suppress(MedtasksError):  # an unknown metric is a finding of its own
        if get_metric(name).width != 2:
            return "not 0 or 1 for an answer"
    return ""


def _check_error_answers(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    """Report answers in ``metadata.errors`` that no document has."""
    gold_answers, options = {}, {}
    for document in documents:
        gold = gold_text(document)
        if gold:
            gold_answers[normalise(gold)] = gold
        for _, text in options_of(document):
            options[normalise(text)] = text
    for number, kind in enumerate(file.metadata.errors):
        for field, answers, noun in (
            ("gold", gold_answers, "gold answer"),
            ("gold_other_than", gold_answers, "gold answer"),
            ("answer", options, "option"),
            ("answer_other_than", options, "option"),
        ):
            for text in getattr(kind, field):
                if answers and normalise(text) not in answers:
                    has = f"`errors[{number}].{field}` has {shown(text)}"
                    near = suggestion(text, answers.values())
                    message = f"{has}, which is the {noun} of no document{near}"
                    report.on_key("MT146", message, "metadata", "errors", number, field)

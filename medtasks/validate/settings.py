"""Rules for settings of a task file: the file and the prepared documents have what they refer
to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from medtasks.benchmarks.error_kinds import gold_text
from medtasks.catalog.task_model import TaskFile
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import failed
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import first_names
from medtasks.metrics.normalisation import normalise
from medtasks.metrics.registry import get_metric
from medtasks.validate.options import options_of
from medtasks.validate.report import Documents, TaskReport


def check_settings(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    """Report settings that refer to what the file, or every prepared document, lacks.

    Without ``documents``, only the file is checked.
    """
    _check_cluster_key(file, documents, report)
    _check_confidence(file, documents, report)
    _check_error_answers(file, documents, report)


def _check_cluster_key(file: TaskFile, documents: Documents, report: TaskReport) -> None:
    """Report a ``cluster_key`` that is missing, or that no document has."""
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
    if confidence.of == "option":
        _check_choices(documents, report)


def _check_choices(documents: Documents, report: TaskReport) -> None:
    """Report that no document has options, whose letters confidence is asked for."""
    if documents and not any(document.get("choices") for document in documents):
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
    gold = _ExistingAnswers("gold answer", _gold_answers(documents))
    options = _ExistingAnswers("option", _option_texts(documents))
    existing_answers = {
        "gold": gold,
        "gold_other_than": gold,
        "answer": options,
        "answer_other_than": options,
    }
    for number, error_kind in enumerate(file.metadata.errors):
        for field, existing in existing_answers.items():
            for text in getattr(error_kind, field):
                if existing.texts and normalise(text) not in existing.texts:
                    has = f"`errors[{number}].{field}` has {shown(text)}"
                    near = suggestion(text, existing.texts.values())
                    message = f"{has}, which is the {existing.noun} of no document{near}"
                    report.on_key("MT146", message, "metadata", "errors", number, field)


@dataclass(frozen=True)
class _ExistingAnswers:
    """The ``texts`` of answers in documents, by normalised text; ``noun`` is what one is called."""

    noun: str
    texts: Mapping[str, str]


def _gold_answers(documents: Documents) -> dict[str, str]:
    """The gold answers of documents, by normalised text."""
    answers = {}
    for document in documents:
        gold = gold_text(document)
        if gold:
            answers[normalise(gold)] = gold
    return answers


def _option_texts(documents: Documents) -> dict[str, str]:
    """The texts of documents' options, by normalised text."""
    texts = {}
    for document in documents:
        for _, text in options_of(document):
            texts[normalise(text)] = text
    return texts

"""Rules for the documents of a task: complete, consistently typed and distinct."""

from __future__ import annotations

import json
from collections.abc import Mapping

from medtasks.catalog.benchmark import Benchmark
from medtasks.core.schema import shown
from medtasks.validate.options import check_bias, check_options
from medtasks.validate.report import Document, Documents, TaskReport

_TEXT_FIELDS = ("sample_id", "cluster", "target", "abstention", "question")
_OPTIONAL = frozenset({"question"})
_MAY_BE_EMPTY = frozenset({"abstention"})

_TYPE_NAMES = (
    (bool, "truth value"),  # before numbers: a bool is an int
    (int | float, "number"),
    (str, "text"),
    (Mapping, "mapping"),
    (list | tuple, "list"),
)


def check_documents(documents: Documents, benchmark: Benchmark, report: TaskReport) -> None:
    """Report the defects of one task's documents."""
    for document in documents:
        _check_fields(document, benchmark, report)
        _check_doubt(document, benchmark, report)
        _check_json(document, report)
        check_options(document, benchmark, report)
    _check_ids(documents, report)
    _check_duplicates(documents, benchmark, report)
    _check_types(documents, report)
    check_bias(documents, report)


def _check_fields(document: Document, benchmark: Benchmark, report: TaskReport) -> None:
    """Report fields that every document must have: missing, of the wrong type, or empty."""
    for field in _TEXT_FIELDS:
        if field in _OPTIONAL and field not in document:
            continue
        fault = _field_fault(document, field)
        if fault:
            report.on_document("MT304", document, f"`{field}` is {fault}, expected text", field)
    fault = _field_fault(document, "media")
    if not fault or (fault == "empty" and not benchmark.requires_media):
        return
    code = "MT317" if fault == "empty" else "MT304"
    report.on_document(code, document, f"`media` is {fault}, expected a list of files", "media")


def _field_fault(document: Document, field: str) -> str:
    """What is wrong with a field: ``missing``, ``empty``, or a value of the wrong type; otherwise
    an empty string.
    """
    if field not in document:
        return "missing"
    value = document[field]
    texts = value if field == "media" else [value]
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return shown(value)
    if field in _MAY_BE_EMPTY or "".join(texts).strip():
        return ""
    return "empty"


def _check_doubt(document: Document, benchmark: Benchmark, report: TaskReport) -> None:
    """Report a gold answer that the benchmark itself doubts."""
    doubt = benchmark.data.doubt
    if doubt is None or not isinstance(document.get("target"), str):
        return
    reason = doubt(document)
    if reason:
        report.on_document("MT325", document, reason, "target")


def _check_json(document: Document, report: TaskReport) -> None:
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        report.on_document("MT321", document, f"it cannot be written as JSON ({error})")


def _check_ids(documents: Documents, report: TaskReport) -> None:
    """Report ids that several documents have."""
    numbers: dict[str, int] = {}
    for number, document in enumerate(documents, start=1):
        earlier = numbers.setdefault(str(document.get("sample_id")), number)
        if earlier != number:
            message = f"documents {earlier} and {number} have the same `sample_id`"
            report.on_document("MT305", document, message, "sample_id")


def _check_duplicates(documents: Documents, benchmark: Benchmark, report: TaskReport) -> None:
    """Report documents with the same prompt and media, whether or not their answers agree."""
    firsts: dict[str, Document] = {}
    for document in documents:
        visible = sorted(benchmark.visible_fields & set(document))
        fields = [*visible, "media", "frames", "prompt_template"]
        prompt = repr([(field, document.get(field)) for field in fields])
        first = firsts.setdefault(prompt, document)
        if first is document:
            continue
        message = f"question, options and media are those of {shown(first.get('sample_id'))}"
        if first.get("target") == document.get("target"):
            report.on_document("MT306", document, message)
        else:
            report.on_document("MT319", document, f"{message}, the answer is not")


def _check_types(documents: Documents, report: TaskReport) -> None:
    """Report fields of several types: the harness keeps documents in a table, and a column of a
    table has one type.
    """
    firsts: dict[str, tuple[str, object]] = {}
    for document in documents:
        for field, value in document.items():
            if value is None:
                continue
            name = _type_name(value)
            first_name, first_id = firsts.setdefault(field, (name, document.get("sample_id")))
            if first_name != name:
                earlier = f"a {first_name} in {shown(first_id)}"
                message = f"`{field}` is a {name}, but {earlier}, expected one type"
                report.on_document("MT322", document, message, field)


def _type_name(value: object) -> str:
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return type(value).__name__

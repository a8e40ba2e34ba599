"""Checks of a task's documents: complete, of one type, distinct, and fit to be scored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.schema import shown
from medtasks.validation.findings import Tally
from medtasks.validation.options import check_bias, check_options, options_of

LONG = 12
"""Characters from which an answer inside its question is no coincidence."""

_COMMON: Mapping[str, str] = {
    "sample_id": "a text",
    "cluster": "a text",
    "target": "a text",
    "media": "a list of texts",
    "abstention": "a text",
}


def check_documents(documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, tally: Tally) -> None:
    """Count in ``tally`` what is wrong with the documents of one task."""
    for document in documents:
        _common(document, benchmark, tally)
        _question(document, tally)
        check_options(document, benchmark.options, tally)
        _writable(document, tally)
        _doubt(document, benchmark, tally)
    _ids(documents, tally)
    _twice(documents, benchmark, tally)
    _types(documents, tally)
    check_bias(documents, tally)


def _doubt(document: Mapping[str, Any], benchmark: Benchmark, tally: Tally) -> None:
    if benchmark.doubt is None or not isinstance(document.get("target"), str):
        return
    doubt = benchmark.doubt(document)
    if doubt is not None:
        tally.add("MT325", document, doubt, "read scores on such documents with care", "target")


def _common(document: Mapping[str, Any], benchmark: Benchmark, tally: Tally) -> None:
    for field, words in _COMMON.items():
        code, value = "MT309" if field == "cluster" else "MT304", document.get(field)
        if field not in document:
            tally.add(code, document, f"`{field}` is missing, expected {words}", "let `documents` add it", field)
        elif not (_is_texts(value) if field == "media" else isinstance(value, str)):
            message = f"`{field}` is {shown(value)}, expected {words}"
            tally.add(code, document, message, "let `documents` make it one", field)
    if document.get("benchmark") != benchmark.name:
        message = f"`benchmark` is {shown(document.get('benchmark'))}, expected {benchmark.name!r}"
        tally.add("MT320", document, message, "use the rows of the task's benchmark", "benchmark")
    for field, code in (("sample_id", "MT304"), ("cluster", "MT309"), ("target", "MT308")):
        value = document.get(field)
        if isinstance(value, str) and not value.strip():
            message = f"`{field}` is empty, expected a text"
            tally.add(code, document, message, "fix the record", field)
    if document.get("media") == []:
        message = "`media` is empty, expected a picture or video"
        tally.add("MT317", document, message, "fix the record", "media")


def _is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _question(document: Mapping[str, Any], tally: Tally) -> None:
    question, target = document.get("question"), document.get("target")
    if "question" not in document:
        return
    if not isinstance(question, str) or not question.strip():
        message = f"`question` is {shown(question)}, expected a text that is not empty"
        tally.add("MT310", document, message, "fix the record", "question")
    elif isinstance(target, str) and _gives_away(document, question, target):
        message = f"the question contains its answer ({target[:60]!r})"
        tally.add("MT323", document, message, "reword the question", "question")


def _gives_away(document: Mapping[str, Any], question: str, target: str) -> bool:
    """Whether an open question contains its answer; an abstention does not count."""
    if len(target.strip()) < LONG or target == document.get("abstention") or any(True for _ in options_of(document)):
        return False
    return " ".join(target.split()).casefold().rstrip(".") in " ".join(question.split()).casefold()


def _writable(document: Mapping[str, Any], tally: Tally) -> None:
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"it cannot be written as JSON ({' '.join(str(error).split())[:120]})"
        tally.add("MT321", document, message, "use texts, finite numbers, lists and mappings only")


def _ids(documents: Sequence[Mapping[str, Any]], tally: Tally) -> None:
    seen: set[str] = set()
    for document in documents:
        name = str(document.get("sample_id"))
        if name in seen:
            tally.add("MT305", document, "an earlier document has the same `sample_id`", "number them", "sample_id")
        seen.add(name)


def _twice(documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, tally: Tally) -> None:
    """The same prompt over the same media: a duplicate, or worse if the answers differ."""
    seen: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        fields = [*sorted(benchmark.visible_fields & set(document)), "media", "frames"]
        key = repr([(field, document.get(field)) for field in fields])
        first = seen.setdefault(key, document)
        if first is document:
            continue
        other = shown(first.get("sample_id"))
        if first.get("target") == document.get("target"):
            tally.add("MT306", document, f"question, options and media are those of {other}", "remove one")
        else:
            message = f"question, options and media are those of {other}, the answer is not"
            tally.add("MT319", document, message, "keep the right one")


def _types(documents: Sequence[Mapping[str, Any]], tally: Tally) -> None:
    """The harness keeps documents in a table with one type per column."""
    first: dict[str, tuple[str, str]] = {}
    for document in documents:
        for field, value in document.items():
            kind = _kind(value)
            if kind is None:
                continue
            known, named = first.setdefault(field, (kind, str(document.get("sample_id"))))
            if known != kind:
                message = f"`{field}` is a {kind}, but a {known} in {shown(named)}, expected one type"
                tally.add("MT322", document, message, "let `documents` make them alike", field)


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, (int, float)):
        return "number"
    kinds = ((str, "text"), (Mapping, "mapping"), ((list, tuple), "list"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)

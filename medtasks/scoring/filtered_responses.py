"""A task's filter, applied to responses; what filters of other packages return is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.catalog.guest_code import wrong_return
from medtasks.catalog.spec import TaskSpec


def filtered_responses(
    spec: TaskSpec, documents: Sequence[Mapping[str, Any]], responses: Sequence[list[str]]
) -> list[list[Reading]]:
    """The filtered responses to each document, without surrounding space."""
    if not documents:
        return []
    step = spec.filter.kind()
    if isinstance(step, ResponseFilter):
        readings = step.readings(responses, documents)
    else:
        readings = _foreign_readings(spec, step, documents, responses)
    stripped = []
    for readings_of_document in readings:
        stripped.append([Reading(text.strip(), how) for text, how in readings_of_document])
    return stripped


def _foreign_readings(
    spec: TaskSpec,
    step: Any,
    documents: Sequence[Mapping[str, Any]],
    responses: Sequence[list[str]],
) -> list[list[Reading]]:
    """What a filter of the harness or another package returns.

    Raises:
        MedtasksError: it is not one filtered response for each response.
    """
    name = f"filter {spec.filters[-1]}"
    function = type(step).apply
    filtered: Any = step.apply([*responses], [*documents])
    count = len(documents)
    if not _is_list(filtered) or len(filtered) != count:
        expected = "a list with one entry"
        if count > 1:
            expected = f"a list with an entry for each of {count} documents"
        raise wrong_return(name, function, filtered, expected)
    readings = []
    for entry, responses_to_document in zip(filtered, responses, strict=True):
        texts = [entry] if isinstance(entry, str) else entry
        if not _is_list(texts) or not all(isinstance(text, str) for text in texts):
            expected = "a filtered response, or a list of them"
            raise wrong_return(name, function, entry, expected)
        if len(texts) != len(responses_to_document):
            expected = f"a filtered response for each of {len(responses_to_document)}"
            raise wrong_return(name, function, entry, expected)
        readings.append([Reading(text) for text in texts])
    return readings


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)

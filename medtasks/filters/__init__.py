"""From raw responses to what is scored; every filter has a version that counts in the protocol hash."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from medtasks.errors import MedtasksError
from medtasks.filters import alert_state as _alert_state
from medtasks.filters import answer_text as _answer_text
from medtasks.filters import answerability as _answerability
from medtasks.filters import last_stage as _last_stage
from medtasks.filters import option_letter as _option_letter
from medtasks.filters import reasoned_answer as _reasoned_answer
from medtasks.filters.alert_state import AlertResponse, AlertStateFilter, alert_status, is_alert, parse_alert
from medtasks.filters.answer_text import AnswerTextFilter
from medtasks.filters.answerability import (
    UNANSWERABLE,
    AnswerabilityFilter,
    answer_or_unanswerable,
    answerability_status,
    is_unanswerable,
)
from medtasks.filters.last_stage import LastStageOptionFilter, join_stages, read_stages
from medtasks.filters.option_letter import (
    Extraction,
    OptionLetterFilter,
    extract_option,
    option_status,
    parse_filtered,
)
from medtasks.filters.reasoned_answer import ReasonedAnswerFilter, final_answer, reasoned_status
from medtasks.filters.thinking import strip_thinking

if TYPE_CHECKING:
    from medtasks.plugin import FilterInfo

__all__ = [
    "FILTERS",
    "FILTER_VERSIONS",
    "UNANSWERABLE",
    "AlertResponse",
    "AlertStateFilter",
    "AnswerTextFilter",
    "AnswerabilityFilter",
    "Extraction",
    "LastStageOptionFilter",
    "OptionLetterFilter",
    "ReasonedAnswerFilter",
    "alert_status",
    "answer_or_unanswerable",
    "answerability_status",
    "extract_option",
    "filter_class",
    "final_answer",
    "is_alert",
    "is_unanswerable",
    "join_stages",
    "option_status",
    "parse_alert",
    "parse_filtered",
    "read_stages",
    "reasoned_status",
    "status_of",
    "strip_thinking",
    "version_of",
]


@dataclass(frozen=True)
class _Known:
    """A filter, its version, and how it says of a filtered response whether there is an answer to score."""

    kind: type[Any]
    version: str
    status: Callable[[str], str]


def _text_status(filtered: str) -> str:
    return "ok" if filtered.strip() else "empty"


_KNOWN: dict[str, _Known] = {
    "alert_state": _Known(AlertStateFilter, _alert_state.VERSION, alert_status),
    "answer_text": _Known(AnswerTextFilter, _answer_text.VERSION, _text_status),
    "answerability": _Known(AnswerabilityFilter, _answerability.VERSION, answerability_status),
    "last_stage_option": _Known(
        LastStageOptionFilter, f"{_last_stage.VERSION}.{_option_letter.VERSION}", option_status
    ),
    "option_letter": _Known(OptionLetterFilter, _option_letter.VERSION, option_status),
    "reasoned_answer": _Known(ReasonedAnswerFilter, _reasoned_answer.VERSION, reasoned_status),
}

FILTERS: dict[str, type[Any]] = {name: known.kind for name, known in _KNOWN.items()}
"""The filters by registry name."""

FILTER_VERSIONS: dict[str, str] = {known.kind.__name__: known.version for known in _KNOWN.values()}
"""Version of each filter, by the class name that task files use."""

_STATUS: dict[str, Callable[[str], str]] = {known.kind.__name__: known.status for known in _KNOWN.values()}


def status_of(kind: str, filtered: str) -> str:
    """Extraction status of a response that the filter class ``kind`` made: ``ok``, or why there is no answer to score.

    Option letters: ``ok``, ``none``, ``multiple``, ``out_of_range``, ``empty``. Answer texts: ``ok``, ``empty``.
    Answers that may abstain: ``ok``, ``unanswerable``, ``empty``. Alerts: ``ok``, ``invalid``, ``empty``. Reasoned
    answers: ``ok``, ``no_final_answer``, ``empty``.

    Raises:
        MedtasksError: there is no such filter.
    """
    if kind in _STATUS:
        return _STATUS[kind](filtered)
    return _other(kind).status(filtered)


def version_of(kind: str) -> str:
    """Version of the filter class ``kind`` (:func:`medtasks.spec.filter_name`), ours or another package's.

    Raises:
        MedtasksError: there is no such filter.
    """
    return FILTER_VERSIONS[kind] if kind in FILTER_VERSIONS else _other(kind).version


def filter_class(kind: str) -> type[Any]:
    """The filter class called ``kind`` (:func:`medtasks.spec.filter_name`), ours or another package's.

    Raises:
        MedtasksError: there is no such filter.
    """
    ours = {known.kind.__name__: known.kind for known in _KNOWN.values()}
    return ours[kind] if kind in ours else _other(kind).kind


def _other(kind: str) -> FilterInfo | _Known:
    from medtasks.registry import all_filters

    found = all_filters()
    if kind in found:
        return found[kind]
    named = _imported(kind)  # task files may name it where it is imported, not where it is defined
    registered: list[FilterInfo | _Known] = [*_KNOWN.values(), *found.values()]
    known = next((one for one in registered if one.kind is named), None)
    if known is None:
        raise MedtasksError(f"filter {kind!r} is unknown; choose from {', '.join([*_STATUS, *found])}.")
    return known


@functools.cache
def _imported(path: str) -> Any:
    """What a dotted name stands for; None where there is nothing."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name, None) if module else None
    except Exception:  # another package's code; who named it says more
        return None

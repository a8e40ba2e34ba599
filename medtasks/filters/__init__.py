"""Filters turn raw responses into what is scored; each has a version, which is part of the protocol hash."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from medtasks.errors import MedtasksError
from medtasks.filters.alert_state import AlertStateFilter
from medtasks.filters.answer_text import AnswerTextFilter
from medtasks.filters.answerability import AnswerabilityFilter
from medtasks.filters.base import ResponseFilter
from medtasks.filters.option_letter import LastStageOptionFilter, OptionLetterFilter
from medtasks.filters.reasoned_answer import ReasonedAnswerFilter
from medtasks.filters.stated_confidence import StatedConfidenceFilter
from medtasks.filters.thinking import strip_thinking

if TYPE_CHECKING:
    from medtasks.plugin import FilterInfo

__all__ = [
    "FILTER_VERSIONS",
    "AlertStateFilter",
    "AnswerTextFilter",
    "AnswerabilityFilter",
    "LastStageOptionFilter",
    "OptionLetterFilter",
    "ReasonedAnswerFilter",
    "StatedConfidenceFilter",
    "filter_class",
    "status_of",
    "strip_thinking",
    "version_of",
]


_OURS: dict[str, type[ResponseFilter]] = {
    kind.__name__: kind
    for kind in (
        AlertStateFilter,
        AnswerTextFilter,
        AnswerabilityFilter,
        LastStageOptionFilter,
        OptionLetterFilter,
        ReasonedAnswerFilter,
        StatedConfidenceFilter,
    )
}

FILTER_VERSIONS: dict[str, str] = {name: kind.version for name, kind in _OURS.items()}
"""Version of each of our filters, by the class name that task files use."""


def status_of(kind: str, filtered: str) -> str:
    """Extraction status of a response filtered by the class ``kind``: ``ok``, or why there is no answer to score.

    Option letters: ``ok``, ``none``, ``multiple``, ``out_of_range``, ``empty``. Answer texts: ``ok``, ``empty``.
    Answers that may abstain: ``ok``, ``unanswerable``, ``empty``. Alerts: ``ok``, ``invalid``, ``empty``. Reasoned
    answers: ``ok``, ``no_final_answer``, ``empty``. Stated confidences: ``ok``, ``missing``, ``several``,
    ``out_of_range``.

    Raises:
        MedtasksError: there is no such filter.
    """
    return _registered(kind).status(filtered)


def version_of(kind: str) -> str:
    """Version of the filter class ``kind`` (:func:`medtasks.spec.filter_name`), ours or another package's.

    Raises:
        MedtasksError: there is no such filter.
    """
    return FILTER_VERSIONS[kind] if kind in FILTER_VERSIONS else _registered(kind).version


def filter_class(kind: str) -> type[Any]:
    """The filter class called ``kind`` (:func:`medtasks.spec.filter_name`), ours or another package's.

    Raises:
        MedtasksError: there is no such filter.
    """
    found = _registered(kind)
    return found if isinstance(found, type) else found.kind


def _registered(kind: str) -> FilterInfo | type[ResponseFilter]:
    if kind in _OURS:
        return _OURS[kind]
    from medtasks.registry import all_filters

    others = all_filters()
    if kind in others:
        return others[kind]
    named = _imported(kind)  # a task file may name the module that imports a filter, not the one that defines it
    if named in _OURS.values():
        return _OURS[named.__name__]
    known = next((one for one in others.values() if one.kind is named), None)
    if known is None:
        raise MedtasksError(f"filter {kind!r} is unknown; choose from {', '.join([*_OURS, *others])}.")
    return known


@functools.cache
def _imported(path: str) -> Any:
    """The object that a dotted name refers to, or None."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name, None) if module else None
    except Exception:  # another package's code; the caller reports the name
        return None

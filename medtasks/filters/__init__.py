"""Filters turn raw responses into what is scored; each has a version, which is part of the protocol hash."""

from __future__ import annotations

from typing import Any

from medtasks.filters.alert_state import AlertStateFilter
from medtasks.filters.answer_text import AnswerTextFilter
from medtasks.filters.answerability import AnswerabilityFilter
from medtasks.filters.option_letter import LastStageOptionFilter, OptionLetterFilter
from medtasks.filters.reasoned_answer import ReasonedAnswerFilter
from medtasks.filters.stated_confidence import StatedConfidenceFilter
from medtasks.filters.thinking import strip_thinking
from medtasks.registry import FilterInfo, Plugin, get_filter

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


PLUGIN = Plugin(
    filters=tuple(
        FilterInfo(kind, kind.version, kind.status)
        for kind in (
            AlertStateFilter,
            AnswerTextFilter,
            AnswerabilityFilter,
            LastStageOptionFilter,
            OptionLetterFilter,
            ReasonedAnswerFilter,
            StatedConfidenceFilter,
        )
    )
)

FILTER_VERSIONS: dict[str, str] = {info.kind.__name__: info.version for info in PLUGIN.filters}
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
    return get_filter(kind).status(filtered)


def version_of(kind: str) -> str:
    """Version of the filter class ``kind`` (:func:`medtasks.registry.filter_name`), ours or another package's.

    Raises:
        MedtasksError: there is no such filter.
    """
    return FILTER_VERSIONS[kind] if kind in FILTER_VERSIONS else get_filter(kind).version


def filter_class(kind: str) -> type[Any]:
    """The filter class called ``kind`` (:func:`medtasks.registry.filter_name`), ours or another package's.

    Raises:
        MedtasksError: there is no such filter.
    """
    return get_filter(kind).kind

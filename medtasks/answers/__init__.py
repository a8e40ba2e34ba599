"""Filters turn raw responses into what is scored; each has a version, which is part of the protocol hash."""

from __future__ import annotations

from medtasks.answers.alert_state import AlertStateFilter
from medtasks.answers.answerability import AnswerabilityFilter
from medtasks.answers.markup import AnswerTextFilter, strip_thinking
from medtasks.answers.option_letter import LastStageOptionFilter, OptionLetterFilter
from medtasks.answers.reasoned_answer import ReasonedAnswerFilter
from medtasks.answers.stated_confidence import StatedConfidenceFilter
from medtasks.catalog.registry import FilterInfo, Plugin

__all__ = [
    "FILTER_VERSIONS",
    "AlertStateFilter",
    "AnswerTextFilter",
    "AnswerabilityFilter",
    "LastStageOptionFilter",
    "OptionLetterFilter",
    "ReasonedAnswerFilter",
    "StatedConfidenceFilter",
    "strip_thinking",
]

_KINDS = (
    AlertStateFilter,
    AnswerTextFilter,
    AnswerabilityFilter,
    LastStageOptionFilter,
    OptionLetterFilter,
    ReasonedAnswerFilter,
    StatedConfidenceFilter,
)
PLUGIN = Plugin(filters=tuple(FilterInfo(kind, kind.version, kind.status) for kind in _KINDS))

FILTER_VERSIONS: dict[str, str] = {kind.__name__: kind.version for kind in _KINDS}
"""Version of each of our filters, by the class name that task files use."""

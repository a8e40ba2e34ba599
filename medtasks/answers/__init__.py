"""Filters turn raw responses into what is scored; each has a version, which is part of the protocol
hash.
"""

from __future__ import annotations

from medtasks.answers.alert_state import AlertStateFilter as AlertStateFilter
from medtasks.answers.answerability import AnswerabilityFilter as AnswerabilityFilter
from medtasks.answers.closed_answer import ClosedAnswerFilter as ClosedAnswerFilter
from medtasks.answers.markup import AnswerTextFilter as AnswerTextFilter
from medtasks.answers.option_letter import OptionLetterFilter as OptionLetterFilter
from medtasks.answers.reasoned_answer import ReasonedAnswerFilter as ReasonedAnswerFilter
from medtasks.answers.stages import LastStageOptionFilter as LastStageOptionFilter
from medtasks.answers.stated_confidence import StatedConfidenceFilter as StatedConfidenceFilter
from medtasks.catalog.registry import FilterInfo, Plugin

_KINDS = (
    AlertStateFilter,
    AnswerTextFilter,
    AnswerabilityFilter,
    ClosedAnswerFilter,
    LastStageOptionFilter,
    OptionLetterFilter,
    ReasonedAnswerFilter,
    StatedConfidenceFilter,
)
PLUGIN = Plugin(filters=tuple(FilterInfo(kind, kind.version, kind.status) for kind in _KINDS))

FILTER_VERSIONS: dict[str, str] = {kind.__name__: kind.version for kind in _KINDS}
"""Version of each of our filters, by the class name that task files use."""

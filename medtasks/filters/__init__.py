"""From raw responses to what is scored; every filter has a version that counts in the protocol hash."""

from __future__ import annotations

from medtasks.filters import answer_text as _answer_text
from medtasks.filters import option_letter as _option_letter
from medtasks.filters.answer_text import AnswerTextFilter
from medtasks.filters.option_letter import (
    Extraction,
    OptionLetterFilter,
    extract_option,
    option_status,
    parse_filtered,
)
from medtasks.filters.thinking import strip_thinking

__all__ = [
    "FILTERS",
    "FILTER_VERSIONS",
    "AnswerTextFilter",
    "Extraction",
    "OptionLetterFilter",
    "extract_option",
    "option_status",
    "parse_filtered",
    "strip_thinking",
]

FILTERS: dict[str, type[AnswerTextFilter] | type[OptionLetterFilter]] = {
    "answer_text": AnswerTextFilter,
    "option_letter": OptionLetterFilter,
}
"""The filters by registry name."""

FILTER_VERSIONS: dict[str, str] = {
    "AnswerTextFilter": _answer_text.VERSION,
    "OptionLetterFilter": _option_letter.VERSION,
}
"""Version of each filter, by the class name that task files use."""

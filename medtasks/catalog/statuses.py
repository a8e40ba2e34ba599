"""The statuses of responses: codes, which files keep, and words for summaries and pages."""

from __future__ import annotations

from collections.abc import Mapping

FAILED = "failed"
"""Status of a sample to which the back-end gave no response."""
MISSED = "missed"
"""Status of a round of a paced stream that was not sent, because the model was still busy."""
NO_FINAL_ANSWER = "no_final_answer"
"""Status of a response that reasons without coming to an answer; it is scored as a whole."""
ANSWERED = ("ok", "unanswerable", NO_FINAL_ANSWER)
"""Statuses of responses with an answer."""

STATUS_WORDS: Mapping[str, str] = {
    "ok": "with an answer",
    "none": "without an option",
    "multiple": "with several options",
    "out_of_range": "out of range",
    "empty": "empty",
    "invalid": "without a valid answer",
    "unanswerable": "called unanswerable",
    NO_FINAL_ANSWER: "without a final answer",
    "missing": "without a confidence",
    "several": "with several confidences",
    FAILED: "failed",
    MISSED: "missed",
}
"""Words for responses with each status of our filters, and for failed requests."""


def status_words(status: str) -> str:
    """What is said of a response with this status; of another package's status, its own words.

    >>> status_words("no_final_answer"), status_words("two_states")
    ('without a final answer', 'two states')
    """
    return STATUS_WORDS.get(status) or status.replace("_", " ")


def status_counts(counts: Mapping[str, int]) -> str:
    """The numbers of responses by status, in words.

    >>> status_counts({"none": 1, "empty": 1200})
    '1 without an option, 1,200 empty'
    """
    return ", ".join(f"{count:,} {status_words(status)}" for status, count in counts.items())

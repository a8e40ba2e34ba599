"""What is asked of a judge, and what comes back: the border between rubrics and the client."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["BUDGET", "Failure", "JudgeAnswer", "JudgeRequest", "Messages", "Outcome", "well_formed"]

BUDGET = "budget"
"""The whole reason of a request that was not asked because the budget was spent."""

Messages: TypeAlias = "tuple[dict[str, Any], ...]"

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class JudgeRequest:
    """One question to a judge.

    Args:
        key: hash of everything that determines the verdict (judge model, settings, rubric version, rendered prompt),
            computed by the caller. Two requests of one key are the same question.
        messages: OpenAI chat messages, or what makes them: called in another thread for each attempt, so that large
            ones exist only while they are sent. It raises `MedtasksError` where the question cannot be put.
        schema: JSON schema of the verdict, for judges with structured output; None asks for free text.
    """

    key: str
    messages: Messages | Callable[[], Messages] = field(hash=False)
    schema: dict[str, Any] | None = field(hash=False)


@dataclass(frozen=True)
class JudgeAnswer:
    """What a judge said, not yet read as a verdict.

    ``text`` is the message's content, or its refusal; empty where the judge said nothing. Tokens are those that the
    endpoint reports, 0 where it reports none (``Spent.unmetered`` counts these answers).
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    refusal: bool


@dataclass(frozen=True)
class Failure:
    """No answer came.

    ``reason`` is one line, "<kind>: <detail>" or "<kind>", the kind being `BUDGET`, "outage", "http <status>",
    "timeout", "connection", "bad reply" or "question". It never holds the API key.
    """

    reason: str


Outcome: TypeAlias = "JudgeAnswer | Failure"


def well_formed(text: str) -> str:
    """``text`` with U+FFFD for lone surrogates, which no UTF-8 file, database or request body can hold.

    >>> well_formed("a\\ud800b") == "a\\ufffdb"
    True
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)

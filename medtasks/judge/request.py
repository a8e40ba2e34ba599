"""Requests to a judge, and their outcomes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

BUDGET = "budget"
"""The reason of a request that was not sent because the budget was spent."""

Messages: TypeAlias = "tuple[dict[str, Any], ...]"

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class JudgeRequest:
    """One question to a judge.

    Args:
        key: hash of everything that determines the verdict (judge model, settings, rubric version, rendered prompt),
            computed by the caller. Two requests with the same key are the same question.
        messages: OpenAI chat messages, or a function that returns them: called in another thread for each attempt, so
            that images are in memory only while they are sent. It raises `MedtasksError` if it cannot.
        schema: JSON schema of the verdict, for judges with structured output; None asks for free text.
    """

    key: str
    messages: Messages | Callable[[], Messages] = field(hash=False)
    schema: dict[str, Any] | None = field(hash=False)


@dataclass(frozen=True)
class JudgeAnswer:
    """A judge's answer, not yet parsed as a verdict.

    ``text`` is the message's content or its refusal; it may be empty. Tokens are as the endpoint reports them; if it
    does not, they are 0 and ``metered`` is false.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    refusal: bool
    metered: bool = True


class Unanswered(Exception):
    """A request has no answer.

    The message is one line, "<kind>: <detail>" or "<kind>", the kind being `BUDGET`, "outage", "http <status>",
    "timeout", "connection", "bad reply" or "question". The API key is never in it.
    """


def well_formed(text: str) -> str:
    """``text`` with U+FFFD for lone surrogates, which no UTF-8 file, database or request body can contain.

    >>> well_formed("a\\ud800b") == "a\\ufffdb"
    True
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)

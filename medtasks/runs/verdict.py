"""Verdicts of judges, as samples store them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from medtasks.core.schema import Compact

STUB = "stub-judge"  # the model of the stub judge, whose verdicts are a demonstration


Rule = Literal["majority", "mean"]


class Verdict(Compact):
    """One judge's verdict on one response: scores and reasons by aspect, or why the response is
    unjudged.
    """

    key: str | None = (
        None  # of the first answer in the store (its repair: key + REPAIR); None without a prompt
    )
    scores: dict[str, int] | None = None  # None never counts as 0
    reasons: dict[str, str] = Field(default_factory=dict)
    unjudged: str | None = None
    repaired: bool = False
    prompt_tokens: int = 0  # of both answers, as stored
    completion_tokens: int = 0

"""Verdicts of judges, as samples store them."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from pydantic import Field

from medtasks.core.schema import Compact

STUB = "stub-judge"
"""The model of the stub judge, whose verdicts are a demonstration."""

Rule = Literal["majority", "mean"]
"""How the verdicts of a panel are combined."""


class Cause(Enum):
    """Why a response has no verdict.

    The values of answers that are not verdicts begin `Verdict.unjudged`, before a colon and
    details.
    """

    REFUSED = "refused"
    CUT = "cut off at the token limit"
    INVALID = "invalid after one repair"
    BUDGET = "budget"
    OUTAGE = "outage"
    REJECTED = "rejected"  # with an HTTP status that typically answers a request without a key
    FAILED = "failed"  # the request, or the images for it could not be read
    DOCUMENT = "document"  # it does not fit the rubric

    @property
    def is_answered(self) -> bool:
        """Whether there is an answer, though not a verdict."""
        return self in (Cause.REFUSED, Cause.CUT, Cause.INVALID)

    @property
    def is_failure(self) -> bool:
        """Whether this question's own request failed."""
        return self in (Cause.REJECTED, Cause.FAILED)


class Verdict(Compact):
    """One judge's verdict on one response: scores and reasons by aspect, or why there is none."""

    # of the first answer in the store (its repair: key + REPAIR); None without a prompt
    key: str | None = None
    scores: dict[str, int] | None = None  # None never counts as 0
    reasons: dict[str, str] = Field(default_factory=dict)
    unjudged: str | None = None
    cause: Cause | None = Field(default=None, exclude=True)  # of `unjudged`; not stored
    repaired: bool = False
    prompt_tokens: int = 0  # of both answers, as stored
    completion_tokens: int = 0

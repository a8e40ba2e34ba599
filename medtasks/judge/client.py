"""Requests to one judge: concurrency, retries, budget, accounting, and when to give up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from medtasks.core.errors import MedtasksError
from medtasks.judge.batch import BatchEndpoint
from medtasks.judge.endpoint import Attempt, Endpoint, Messages
from medtasks.judge.outage import OutageWatch
from medtasks.judge.rate_limiter import RateLimiter
from medtasks.judge.reply import Ending, FailedAttempt, JudgeAnswer
from medtasks.judge.settings import JudgeSettings
from medtasks.runs.verdict import Cause

BUDGET = "budget"  # the reason of a request that was not sent because the budget was spent
LONGEST_BACKOFF = 30.0  # seconds
READING = 0.001
"""Seconds before an answer is returned, so that waiting requests are sent before it is parsed."""

MessagesOf: TypeAlias = "Messages | Callable[[], Messages]"
"""Chat messages, or a function that returns them: called in another thread for each attempt, so
that images are in memory only while they are sent. It raises `MedtasksError` if it cannot.
"""


class Unanswered(Exception):
    """A request has no answer.

    The message is "<kind>: <detail>" or "<kind>", the kind being `BUDGET`, "outage",
    "http <status>", "timeout", "connection", "bad reply" or "question".
    """

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass
class Spent:
    """Requests and tokens used.

    ``requests`` are HTTP requests sent, ``retries`` those that repeat one (also without
    ``response_format``), ``answered`` and ``failed`` questions, ``unmetered`` answers without
    reported tokens.
    """

    requests: int = 0
    retries: int = 0
    answered: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unmetered: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def since(self, before: Spent) -> Spent:
        """What was spent since the state ``before``."""
        return Spent(
            requests=self.requests - before.requests,
            retries=self.retries - before.retries,
            answered=self.answered - before.answered,
            failed=self.failed - before.failed,
            prompt_tokens=self.prompt_tokens - before.prompt_tokens,
            completion_tokens=self.completion_tokens - before.completion_tokens,
            unmetered=self.unmetered - before.unmetered,
        )


class JudgeClient:
    """Asks one judge, inside ``async with``.

    Limits, budget and knowledge of the endpoint persist between uses. ``structured`` is whether the
    endpoint accepts ``response_format``; None until it is known.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.spent = Spent()
        self.structured = settings.structured
        self._limiter = RateLimiter(settings.in_flight, settings.in_flight)

    @property
    def waiting_for(self) -> str | None:
        """What the judge's answers are waiting for, or None.

        Batches under way, or why the latest attempt failed if it is tried again and nothing was
        answered since.
        """
        return self._endpoint.state or self._trouble

    async def __aenter__(self) -> JudgeClient:
        endpoint = BatchEndpoint if self.settings.batch else Endpoint
        self._endpoint = endpoint(self.settings)
        # of this event loop
        self._limiter = RateLimiter(self.settings.in_flight, self._limiter.limit)
        self._outage_watch = OutageWatch(has_answered=self.spent.answered > 0)
        self._trouble: str | None = None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._endpoint.close()

    async def answer(
        self, key: str, messages: MessagesOf, schema: dict[str, Any] | None = None
    ) -> JudgeAnswer:
        """The judge's answer, asked for again as long as another attempt is useful and allowed.

        Once the budget is spent, what is in flight finishes and the rest fails with `BUDGET`. In an
        outage (`OutageWatch`), the rest fails with "outage", unasked.

        Raises:
            Unanswered: there is no answer.
        """
        try:
            answer = await self._answered(key, messages, schema)
        except Unanswered:
            self.spent.failed += 1
            raise
        self._outage_watch.note_answer()
        self._trouble = None
        self.spent.answered += 1
        self.spent.prompt_tokens += answer.prompt_tokens
        self.spent.completion_tokens += answer.completion_tokens
        self.spent.unmetered += not answer.metered
        await asyncio.sleep(READING)
        return answer

    async def _answered(
        self, key: str, messages: MessagesOf, schema: dict[str, Any] | None
    ) -> JudgeAnswer:
        """The answer of the first attempt that succeeds."""
        failures = 0
        while True:
            attempt = await self._attempt(messages, schema, again=failures > 0)
            if isinstance(attempt, JudgeAnswer):
                return attempt
            failures += 1
            if not attempt.again or failures > self.settings.retries:
                raise self._given_up(attempt, failures)
            self._trouble = attempt.reason
            await asyncio.sleep(self._pause(key, attempt, failures))

    def _given_up(self, attempt: FailedAttempt, failures: int) -> Unanswered:
        """The error of a request whose last attempt failed, which may begin an outage."""
        self._outage_watch.note_failure(attempt)
        reason = attempt.reason
        if failures > 1:
            reason = f"{reason} ({failures} attempts)"
        return Unanswered(reason, attempt.cause)

    def _pause(self, key: str, attempt: FailedAttempt, failures: int) -> float:
        """Seconds before the next attempt."""
        # by the key: the order of completion must not matter
        chance = random.Random(f"{key}:{failures}")
        backoff = self.settings.backoff
        if attempt.wait is not None:
            return attempt.wait + chance.uniform(0, backoff)
        longest = min(LONGEST_BACKOFF, backoff * 2.0 ** min(failures - 1, 30))
        return chance.uniform(0, longest)  # full jitter

    async def _attempt(
        self, messages: MessagesOf, schema: dict[str, Any] | None, *, again: bool
    ) -> Attempt:
        """One attempt in a slot, or two.

        The second is made if the first may have been refused for its ``response_format``.
        """
        entered = await self._limiter.enter()
        try:
            self._refuse_closed()
            # in the slot: images are in memory only while they are sent
            rendered = await _rendered(messages)
            attempt = await self._sent_with_schema(rendered, schema, again=again)
            if isinstance(attempt, JudgeAnswer):
                self._limiter.answered()
            elif attempt.status == 429 and attempt.again:
                self._limiter.refused(entered, attempt.wait or self.settings.backoff)
            return attempt
        finally:
            self._limiter.leave()

    async def _sent_with_schema(
        self, messages: Messages, schema: dict[str, Any] | None, *, again: bool
    ) -> Attempt:
        """The attempt with the schema if the endpoint may accept it; else, or then, without."""
        structured = schema is not None and self.structured is not False
        attempt = await self._sent(messages, schema if structured else None, again=again)
        if _accepts_format(attempt):
            self.structured = structured or self.structured
        elif structured and self.settings.structured is None and _refuses_request(attempt):
            self._refuse_closed()
            attempt = await self._sent(messages, None, again=True)
            if _accepts_format(attempt) and self.structured is None:
                self.structured = False  # the schema was the reason, not the request
        return attempt

    async def _sent(
        self, messages: Messages, schema: dict[str, Any] | None, *, again: bool
    ) -> Attempt:
        """One attempt, which is counted."""
        self.spent.requests += 1
        self.spent.retries += again
        return await self._endpoint.attempt(messages, schema)

    def _refuse_closed(self) -> None:
        """Raise `Unanswered` if no further request may be sent."""
        budget, spent = self.settings.budget, self.spent
        if budget.max_requests is not None and spent.requests >= budget.max_requests:
            raise Unanswered(BUDGET, Cause.BUDGET)
        if budget.max_tokens is not None and (spent.tokens >= budget.max_tokens or spent.unmetered):
            raise Unanswered(BUDGET, Cause.BUDGET)
        outage = self._outage_watch.reason
        if outage is not None:
            raise Unanswered(outage, Cause.OUTAGE)


async def _rendered(messages: MessagesOf) -> Messages:
    """The messages, made in another thread if a function makes them."""
    if not callable(messages):
        return messages
    try:
        return await asyncio.to_thread(messages)
    except MedtasksError as error:  # about this question alone, so no outage
        reason = " ".join(str(error).split())
        raise Unanswered(f"question: {reason}", Cause.FAILED) from None


def _accepts_format(attempt: Attempt) -> bool:
    """Whether the endpoint read the whole request; a filter may refuse it before."""
    return isinstance(attempt, JudgeAnswer) and attempt.ending is not Ending.REFUSED


def _refuses_request(attempt: Attempt) -> bool:
    return isinstance(attempt, FailedAttempt) and attempt.status in (400, 422)

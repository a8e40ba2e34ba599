"""Many questions to one judge: steady concurrency, retries, budget, accounting."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from medtasks.errors import MedtasksError, UsageError
from medtasks.judge.endpoint import Endpoint, Reply, Setback
from medtasks.judge.pace import Pace
from medtasks.judge.request import BUDGET, Failure, JudgeAnswer, JudgeRequest, Messages, Outcome
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.transport import NotSent

__all__ = ["Budget", "Failure", "JudgeAnswer", "JudgeClient", "JudgeRequest", "JudgeSettings", "Spent"]

OPEN_PER_PLACE = 3  # requests begun per place in flight: while some sleep before a retry, others use their places
LONGEST_BACKOFF = 30.0  # seconds
OUTAGE = 50  # requests

_OWN_FAULT = frozenset({400, 413, 415, 422})  # statuses that tell of the request, not of the endpoint


@dataclass
class Spent:
    """What asking took.

    ``requests`` counts HTTP requests sent, ``retries`` those of them that repeat one (also without
    ``response_format``), ``answered`` and ``failed`` questions, ``unmetered`` answers without reported tokens.
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
        """Tokens of prompts and completions."""
        return self.prompt_tokens + self.completion_tokens

    def since(self, before: Spent) -> Spent:
        """What was spent after ``before`` was copied."""
        return Spent(*(getattr(self, part.name) - getattr(before, part.name) for part in fields(self)))


class JudgeClient:
    """Asks one judge. Limits, budget and what was learnt of the endpoint last over several `ask`.

    ``spent`` is the total so far, current while `ask` runs. ``structured`` says whether the endpoint takes
    ``response_format``: None until it is known.

    Args:
        settings: the endpoint.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.spent = Spent()
        self.structured = settings.structured
        self._pace = Pace(settings.concurrency)
        self._asking = False
        self._failed_in_a_row = 0
        self._outage: str | None = None

    async def ask(
        self,
        requests: Iterable[JudgeRequest] | AsyncIterable[JudgeRequest],
        on_answer: Callable[[JudgeRequest, Outcome], JudgeRequest | None],
    ) -> Spent:
        """Ask every request, once per key, and report each as soon as it is settled.

        ``requests`` is read as places become free, at most three times ``settings.concurrency`` ahead. Requests of one
        key are asked once and all get that outcome, which is kept until the end. ``on_answer`` runs on the event
        loop, in order of completion; a request that it returns is asked next, without waiting for the others. What
        ``on_answer`` or ``requests`` raise ends `ask`, after the requests in flight were cancelled.

        A request that cannot be answered is reported as `Failure`, never left out. Once the budget is spent, what is
        in flight finishes and the rest is reported as `BUDGET`; once 50 requests in a row failed for a reason that is
        the endpoint's (key, rate, 5xx, timeout, connection), the rest is reported as "outage" without being asked.

        Args:
            requests: the questions.
            on_answer: called once per request; what is to be asked because of the answer, or None.

        Returns:
            What this call spent.

        Raises:
            UsageError: this client is asking already, or the API key is malformed.
        """
        if self._asking:
            raise UsageError("JudgeClient.ask: this client is asking already; wait for it or make another client")
        endpoint = Endpoint(self.settings)
        before, self._asking = replace(self.spent), True
        self._failed_in_a_row, self._outage = 0, None
        self._pace.restart()
        source, turn = _stream(requests), asyncio.Lock()
        known: dict[str, asyncio.Future[Outcome]] = {}

        async def work() -> None:
            while True:
                async with turn:  # a generator serves one reader at a time
                    request = await anext(source, None)
                if request is None:
                    return
                while request is not None:
                    request = on_answer(request, await self._outcome(endpoint, request, known))

        try:
            async with endpoint:
                await _all([work() for _ in range(OPEN_PER_PLACE * self.settings.concurrency)])
        finally:
            self._asking = False
            await source.aclose()
        return self.spent.since(before)

    async def _outcome(
        self, endpoint: Endpoint, request: JudgeRequest, known: dict[str, asyncio.Future[Outcome]]
    ) -> Outcome:
        if request.key in known:
            return await known[request.key]
        settled = known[request.key] = asyncio.get_running_loop().create_future()
        outcome = await self._settle(endpoint, request)
        settled.set_result(outcome)
        return outcome

    async def _settle(self, endpoint: Endpoint, request: JudgeRequest) -> Outcome:
        """Attempts, until one is answered, none can help or none may be made."""
        setbacks = 0
        while True:
            turn = _Turn(self, again=setbacks > 0)
            try:
                got = await self._attempt(endpoint, await _messages(request, turn), request.schema, turn)
                if isinstance(got, Reply):
                    turn.answered()
                    return self._answered(got)
                setbacks += 1
                wait = self._wait(request, setbacks, got)
                if got.status == 429 and got.again:  # where it asks for hours, nobody waits for it
                    turn.refused(wait)
            except NotSent as error:
                return self._failed(error.reason)
            finally:
                turn.leave()
            if not got.again or setbacks > self.settings.retries:
                return self._gave_up(got, setbacks)
            await asyncio.sleep(wait)

    async def _attempt(
        self, endpoint: Endpoint, messages: Messages, schema: dict[str, Any] | None, turn: _Turn
    ) -> Reply | Setback:
        """One attempt, or two where the first may have been refused for its ``response_format``."""
        if schema is not None and self.structured is None:
            await turn.take()  # those that had their places before may have found out
        structured = schema is not None and self.structured is not False
        got = await endpoint.attempt(messages, schema if structured else None, turn)
        if not structured:
            return got
        if isinstance(got, Reply):
            self.structured = True
        elif got.status in (400, 422) and self.settings.structured is None and self._closed() is None:
            got = await endpoint.attempt(messages, None, turn)
            if isinstance(got, Reply) and self.structured is None:
                self.structured = False  # it was that, not the request
        return got

    def _closed(self) -> str | None:
        """Why no further request may be sent."""
        budget, spent = self.settings.budget, self.spent
        if budget.max_requests is not None and spent.requests >= budget.max_requests:
            return BUDGET
        if budget.max_tokens is not None and (spent.tokens >= budget.max_tokens or spent.unmetered):
            return BUDGET
        return self._outage

    def _wait(self, request: JudgeRequest, setbacks: int, got: Setback) -> float:
        """Seconds before the next attempt: full jitter, or what the endpoint asks for and a little more."""
        # Of the key, not of a shared generator: the order of completion must not move it.
        chance = random.Random(f"{request.key}:{setbacks}")
        if got.wait is not None:
            return got.wait + chance.uniform(0, self.settings.backoff)
        return chance.uniform(0, min(LONGEST_BACKOFF, self.settings.backoff * 2.0 ** min(setbacks - 1, 30)))

    def _answered(self, got: Reply) -> JudgeAnswer:
        self._failed_in_a_row = 0
        self.spent.answered += 1
        self.spent.prompt_tokens += got.answer.prompt_tokens
        self.spent.completion_tokens += got.answer.completion_tokens
        self.spent.unmetered += not got.metered
        return got.answer

    def _gave_up(self, got: Setback, attempts: int) -> Failure:
        self._failed_in_a_row = 0 if got.status in _OWN_FAULT else self._failed_in_a_row + 1
        if self._failed_in_a_row >= OUTAGE and self._outage is None:
            self._outage = f"outage: {OUTAGE} requests in a row failed, the last with {got.reason}"
        return self._failed(f"{got.reason} ({attempts} attempts)" if attempts > 1 else got.reason)

    def _failed(self, reason: str) -> Failure:
        self.spent.failed += 1
        return Failure(reason)


class _Turn:
    """The place in flight of one attempt: had at the latest from when it is sent, given back once."""

    def __init__(self, client: JudgeClient, *, again: bool) -> None:
        self.timeout = client.settings.timeout
        self._client, self._pace, self._again = client, client._pace, again
        self._entered: int | None = None  # while it has its place

    async def take(self) -> None:
        """Wait for the place.

        Raises:
            NotSent: no further request may be sent.
        """
        if self._entered is None:
            self._entered = await self._pace.enter()
        if (closed := self._client._closed()) is not None:
            raise NotSent(closed)

    async def begin(self) -> None:
        """`take`, and count the request that is sent now."""
        await self.take()
        self._client.spent.requests += 1
        self._client.spent.retries += self._again
        self._again = True

    def arrived(self) -> None:
        """`answered`, where nothing depends on what the answer says."""
        if self._client.settings.budget.max_tokens is None and self._client.structured is not None:
            self.answered()

    def answered(self) -> None:
        """The endpoint gave an answer: the place is free."""
        if self._entered is not None:
            self._pace.answered()
            self.leave()

    def refused(self, seconds: float) -> None:
        """The endpoint answered 429; it may be asked again after ``seconds``."""
        assert self._entered is not None
        self._pace.refused(self._entered, seconds)

    def leave(self) -> None:
        """Give the place back, if it is still held."""
        if self._entered is not None:
            self._entered = None
            self._pace.leave()


async def _stream(
    requests: Iterable[JudgeRequest] | AsyncIterable[JudgeRequest],
) -> AsyncGenerator[JudgeRequest, None]:
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request


async def _messages(request: JudgeRequest, turn: _Turn) -> Messages:
    """What is asked.

    Raises:
        NotSent: it cannot be put, or may not be sent any more.
    """
    if not callable(request.messages):
        return request.messages
    await turn.take()  # large ones exist only while they are sent
    try:
        return await asyncio.to_thread(request.messages)
    except MedtasksError as error:  # of this question alone, so no outage
        raise NotSent(f"question: {' '.join(str(error).split())}") from None


async def _all(work: list[Coroutine[None, None, None]]) -> None:
    """Run all; the first error cancels the others and is raised when they have ended."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Replies of the harness's ``async_openai``, passed on as they arrive, one by one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MedtasksError
from medtasks.runs.replies import FAILED, Reply, ReplyTiming

from .endpoints import begin_noting, noted_reply, renew_connections, responses_noted
from .presentation import backend_name
from .responses import reply_of

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError

_FORWARD = "maybe_forward_with_tool"
"""The method of ``async_openai`` that sends one request."""
_UNREACHED = 4
"""Requests in a row that did not reach the server, after which the run ends."""
_REFUSALS = (401, 403, 404)
"""Statuses for a wrong key or model name.

If as many requests are refused before any other answer, the run ends, too.
"""


def arrive_one_by_one(lm: Any) -> bool:
    """Whether replies of the back-end can be passed on as they arrive."""
    return hasattr(lm, _FORWARD)


@contextmanager
def kept_on_arrival(
    lm: Any, keep: Callable[[Any, Reply], None], answered: Callable[[], int]
) -> Iterator[None]:
    """Call ``keep`` with each request and its reply as soon as it arrives.

    ``lm`` is one of those that :func:`arrive_one_by_one`. ``answered`` returns the number of
    responses so far, for messages.

    Raises:
        MedtasksError: no request reaches the server any more, or it refuses every one.
        OSError: ``keep`` raised it.
    """
    renew_connections(lm)
    watch = _ServerWatch(lm, keep, answered)
    setattr(lm, _FORWARD, watch.forward)
    hooks = _hooks_before_sending(lm)
    hooks.append(_note_sending)
    try:
        with responses_noted(lm):
            yield
    except _EndOfRun as end:
        raise end.error from None
    finally:
        delattr(lm, _FORWARD)  # restores the method of the class
        hooks.remove(_note_sending)


def _hooks_before_sending(lm: Any) -> list[Any]:
    """The functions that the HTTP client of ``lm`` calls before it sends a request."""
    http_client = getattr(getattr(lm, "client", None), "_client", None)
    hooks = getattr(http_client, "event_hooks", {}).get("request")
    return [] if hooks is None else hooks


@dataclass
class _Sending:
    """The attempts to send one request, since the first of them."""

    began: float
    in_flight: int
    # of the back-end, in each of which the client may send the request several times
    tries: int = 0
    attempts: int = 0

    async def note_event(self, event: str, _: Any) -> None:
        """Note the event of the HTTP client that begins the request."""
        if event.endswith("send_request_headers.started"):
            self.began = time.monotonic()


_SENDING: ContextVar[_Sending | None] = ContextVar("_SENDING", default=None)
"""That of the current asyncio task, which sends one request."""


async def _note_sending(request: Any) -> None:
    """Note an attempt, and have the HTTP client note when it writes the first of the request.

    Before, the event loop may encode the pictures of other requests.
    """
    sending = _SENDING.get()
    if sending is None:
        return
    sending.attempts += 1
    if sending.attempts == 1:
        sending.began = time.monotonic()
        request.extensions["trace"] = sending.note_event


class _EndOfRun(BaseException):
    """Carries an error past the back-end's retry loop, which retries every `Exception`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _ServerWatch:
    """Sends requests by the back-end's own method, and ends the run if the server is lost."""

    def __init__(
        self, lm: Any, keep: Callable[[Any, Reply], None], answered: Callable[[], int]
    ) -> None:
        """Watch the requests of ``lm``, as :func:`kept_on_arrival` describes."""
        self._lm = lm
        self._keep = keep
        self._answered = answered
        self._forward = getattr(lm, _FORWARD)
        # unreached attempts by request, since the last response
        self._attempts: Counter[int] = Counter()
        self._refused: set[int] = set()
        # whether the server accepted a request, or failed for another reason than a refusal
        self._has_accepted = False
        self._created = time.monotonic()
        self._sendings: dict[int, _Sending] = {}

    async def forward(self, request: Any, position: int) -> Any:
        """Send a request, and keep its reply."""
        from lmms_eval.api.instance import GenerationResult
        from openai import APIConnectionError, APIStatusError

        responses = begin_noting()
        try:
            text, place, counts = await self._timed_forward(request, position)
        except APIConnectionError as error:
            self._count_unreached(position, error)
            raise
        except APIStatusError as error:
            self._count_refusal(position, error)
            raise
        self._attempts.clear()
        self._has_accepted = True
        timing = self._timing(self._sendings.pop(position))
        reply = noted_reply(reply_of(GenerationResult(text, counts)), responses)
        if reply.failed is None:
            try:
                self._keep(request, replace(reply, timing=timing))
            except OSError as error:
                raise _EndOfRun(error) from error
            return text, place, counts
        return f"{FAILED}{reply.failed}", place, counts

    async def _timed_forward(self, request: Any, position: int) -> Any:
        """Send a request by the back-end's own method, and note its attempts."""
        sending = self._sending(position)
        sending.tries += 1
        _SENDING.set(sending)
        try:
            return await self._forward(request, position)
        except Exception:
            if sending.tries >= self._lm.max_retries:
                del self._sendings[position]
            raise

    def _sending(self, position: int) -> _Sending:
        """The attempts to send a request, of which another one begins."""
        if position not in self._sendings:
            in_flight = len(self._sendings) + 1
            self._sendings[position] = _Sending(time.monotonic(), in_flight)
        return self._sendings[position]

    def _timing(self, sending: _Sending) -> ReplyTiming:
        """The timing of a request whose response has just arrived."""
        return ReplyTiming(
            time.monotonic() - sending.began,
            sending.began,
            queued=sending.began - self._created,
            in_flight=sending.in_flight,
            attempts=max(1, sending.attempts),
        )

    def _count_unreached(self, position: int, error: APIConnectionError) -> None:
        """Count an attempt that did not reach the server; end the run after too many of them."""
        self._attempts[position] += 1
        retries = self._lm.max_retries
        unreached = sum(count >= retries for count in self._attempts.values())
        if unreached >= _UNREACHED:
            problem = (
                f"{_UNREACHED} requests in a row did not reach the server at {self._lm.base_url} "
                f"(max_retries={retries}: {str(error).rstrip('.')})"
            )
            raise self._end(problem, "start the server again") from error

    def _count_refusal(self, position: int, error: APIStatusError) -> None:
        """Count a refused request; end the run if the server has refused every one so far."""
        self._attempts.clear()
        if error.status_code not in _REFUSALS:
            self._has_accepted = True
        self._refused.add(position)
        if not self._has_accepted and len(self._refused) >= _UNREACHED:
            problem = (
                f"the server at {self._lm.base_url} refused the first {_UNREACHED} requests "
                f"(status {error.status_code}: {_message_of(error)})"
            )
            raise self._end(problem, "correct the model name or the key") from error

    def _end(self, problem: str, fix: str) -> _EndOfRun:
        """The end of the run because of a problem with the server."""
        answered = f"{self._answered():,} have a response"
        return _EndOfRun(MedtasksError(f"{backend_name(self._lm)}: {problem}, {answered}; {fix}."))


def _message_of(error: APIStatusError) -> str:
    """The server's own message on one line, or else that of the client."""
    message = error.body.get("message") if isinstance(error.body, Mapping) else None
    return " ".join(str(message or error.message).split())[:200].rstrip(".")

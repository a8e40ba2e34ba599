"""One request and its attempts: what is repeated, how long is waited, and the reply in the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from medtasks.core.errors import first_line
from medtasks.runs.replies import Reply, ReplyTiming

from .failures import Failure, failure_of

LONGEST_PAUSE = 30.0
"""Seconds before a further attempt if the endpoint names none."""


class RequestEnded(BaseException):
    """Leaves the back-end's code after a request failed; it would repeat after any `Exception`."""


@dataclass
class Traffic:
    """What requests that are sent together share: how many are in flight, a pause that the endpoint
    asked for, and the end.
    """

    attempts: int
    backoff: float
    began: float = field(default_factory=time.monotonic)
    _in_flight: int = 0
    _resume_at: float = 0.0
    _has_ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """Make no further attempts at any request."""
        self._has_ended.set()

    @property
    def has_ended(self) -> bool:
        """Whether no further attempts are made."""
        return self._has_ended.is_set()

    @contextmanager
    def in_flight(self) -> Iterator[int]:
        """A block in which one more request is in flight; yields how many there are then."""
        with self._lock:
            self._in_flight += 1
            number = self._in_flight
        try:
            yield number
        finally:
            with self._lock:
                self._in_flight -= 1

    def hold(self, seconds: float) -> None:
        """Let no request be sent for some seconds: a rate limit concerns them all."""
        with self._lock:
            self._resume_at = max(self._resume_at, time.monotonic() + seconds)

    def wait(self, seconds: float = 0.0) -> bool:
        """Wait for some seconds and for the pause; whether requests can still be sent then."""
        begin = time.monotonic() + seconds
        while True:
            remaining = max(begin, self._resume_at) - time.monotonic()
            if remaining <= 0 or self._has_ended.wait(remaining):
                return not self.has_ended

    def pause_after(self, attempt: int) -> float:
        """Seconds before the attempt after the ``attempt``-th: doubled after each, up to 30."""
        return float(min(self.backoff * 2 ** (attempt - 1), max(LONGEST_PAUSE, self.backoff)))


@dataclass
class Exchange:
    """A request that is sent until it is answered, refused, or was attempted often enough.

    ``read`` makes a reply of a response. Afterwards, ``reply`` is the outcome, ``failure`` the last
    failed attempt if there is no response.
    """

    traffic: Traffic
    read: Callable[[Any], Reply]
    reply: Reply | None = None
    failure: Failure | None = None
    attempts: int = 0

    def send(self, attempt: Callable[[], Any]) -> Any:
        """The response of the first attempt that succeeds.

        Raises:
            RequestEnded: none succeeded, or the response cannot be read; ``reply`` has the reason.
        """
        self.traffic.wait()
        with self.traffic.in_flight() as in_flight:
            return self._send(attempt, time.monotonic(), in_flight)

    def _send(self, attempt: Callable[[], Any], sent: float, in_flight: int) -> Any:
        """The response to a request that is ``sent`` now, as one of several ``in_flight``."""
        while not self.traffic.has_ended:
            self.attempts += 1
            try:
                response = attempt()
            except Exception as error:  # any of four packages
                self.failure = failure_of(error)
            else:
                self.failure = None
                self.reply = self._timed(self._reply_in(response), sent, in_flight)
                return response
            if not self._waits_for_another(self.failure):
                break
        self._fail()
        raise RequestEnded

    def _reply_in(self, response: Any) -> Reply:
        """The reply in a response.

        Raises:
            RequestEnded: it cannot be read, such as the page of a proxy; it was paid for, so the
                request is not repeated.
        """
        try:
            return self.read(response)
        except Exception as error:  # a response may lack anything
            reason = f"the response is not of the endpoint's protocol ({first_line(error)})"
            self.reply = Reply.failure(reason)
        raise RequestEnded

    def _timed(self, reply: Reply, sent: float, in_flight: int) -> Reply:
        """The reply that has just arrived, with its timing."""
        if reply.failed is not None:
            return reply
        timing = ReplyTiming(
            time.monotonic() - sent,
            sent,
            queued=sent - self.traffic.began,
            in_flight=in_flight,
            attempts=self.attempts,
        )
        return replace(reply, timing=timing)

    def _waits_for_another(self, failure: Failure) -> bool:
        """Wait until a further attempt is due; whether there is one."""
        if not failure.may_pass:
            return False
        if failure.wait is not None:
            self.traffic.hold(failure.wait)
        if self.attempts >= self.traffic.attempts:
            return False
        return self.traffic.wait(failure.wait or self.traffic.pause_after(self.attempts))

    def _fail(self) -> None:
        """Make the last failure the outcome."""
        reason = self.failure.reason if self.failure else "not sent: the run ended before"
        if self.attempts > 1:
            reason = f"after {self.attempts} attempts: {reason}"
        self.reply = Reply.failure(reason)

"""The seconds of single requests on API back-ends, which answer several at once.

Such a back-end returns all responses of a batch together. While one is asked, the method of its
client that sends a request is timed, and the text of the response carries the timing through the
back-end, which returns the text as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from operator import attrgetter
from typing import Any

from medtasks.runs.replies import Timing

_SENDERS = ("chat.completions", "create"), ("models", "generate_content")
"""Where clients send a request: ``openai`` and ``litellm``, then ``gemini``."""


class TimedText(str):
    """The text of a response with its timing; ``sent`` is the reading of `time.monotonic`."""

    timing: Timing

    @classmethod
    def of(cls, text: str, timing: Timing) -> TimedText:
        """The text with its timing."""
        timed = cls(text)
        timed.timing = timing
        return timed


def timing_of(text: Any) -> Timing | None:
    """The timing that a text carries; None for any other text."""
    return text.timing if isinstance(text, TimedText) else None


@contextmanager
def timed_calls(lm: Any) -> Iterator[None]:
    """Have the texts of responses carry their timings, if the client of ``lm`` is a known one."""
    sender = _sender(lm)
    if sender is None:
        yield
        return
    owner, name = sender
    setattr(owner, name, _Calls(getattr(owner, name)).send)
    try:
        yield
    finally:
        delattr(owner, name)  # restores the method of the class


def _sender(lm: Any) -> tuple[Any, str] | None:
    """The object of the back-end's client that sends requests, and the name of its method."""
    client = getattr(lm, "client", None)
    for path, name in _SENDERS:
        try:
            owner = attrgetter(path)(client)
        except Exception:  # clients look up attributes in their own ways
            continue
        method = getattr(owner, name, None)
        if callable(method) and hasattr(owner, "__dict__"):
            return owner, name
    return None


class _Attempts(threading.local):
    """The attempts of a thread at its request: it sends one after the other."""

    def __init__(self) -> None:
        self.content: Any = None
        self.began = 0.0
        self.count = 0
        self.in_flight = 0


class _Calls:
    """Sends requests by the client's own method, and times them with all their attempts."""

    def __init__(self, send: Callable[..., Any]) -> None:
        self._send = send
        self._created = time.monotonic()
        self._attempts = _Attempts()
        self._lock = threading.Lock()
        self._in_flight = 0

    def send(self, *arguments: Any, **settings: Any) -> Any:
        """The client's response, whose text carries the timing."""
        attempts = self._attempts
        content = settings.get("messages", settings.get("contents"))
        with self._lock:
            self._in_flight += 1
        # back-ends try again with the same object
        if attempts.content is not content or content is None:
            attempts.content = content
            attempts.began = time.monotonic()
            attempts.count = 0
            attempts.in_flight = self._in_flight
        attempts.count += 1
        try:
            response = self._send(*arguments, **settings)
        finally:
            with self._lock:
                self._in_flight -= 1
        if isawaitable(response):  # nothing has been sent yet
            return response
        timing = Timing(
            time.monotonic() - attempts.began,
            attempts.began,
            queued=attempts.began - self._created,
            in_flight=attempts.in_flight,
            attempts=attempts.count,
        )
        attempts.content = None
        return _with_timing(response, timing)


def _with_timing(response: Any, timing: Timing) -> Any:
    """The client's response, the text of which carries the timing."""
    choices = getattr(response, "choices", None)
    if not choices:
        return _TimedResponse(response, timing)
    message = choices[0].message
    if isinstance(message.content, str):
        message.content = TimedText.of(message.content, timing)
    return response


class _TimedResponse:
    """A response whose ``text`` is computed on access, and carries the timing."""

    def __init__(self, response: Any, timing: Timing) -> None:
        self._response = response
        self._timing = timing

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._response, name)
        if name == "text" and isinstance(value, str):
            return TimedText.of(value, self._timing)
        return value

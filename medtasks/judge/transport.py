"""Requests of JSON to one address: openai's client, and below it as little as there can be.

At 64 requests in flight, openai's client and its HTTP library spend more processor time on a request than all else that
a verdict takes. So, for plain HTTP without a proxy, openai builds the first request, and further ones, whose only
difference is their body, go with the head of that one over a :class:`medtasks.judge.wire.Wire`. TLS, proxies
and redirects have openai's client all the way.

A request is made ready before its `Turn` begins, so that the endpoint does not wait for that; and over the wire its
turn may end with the last byte of the answer, before anybody reads it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from medtasks.judge.wire import Response, Wire

__all__ = ["Late", "NotSent", "Transport", "Turn", "wire_to"]

_T = TypeVar("_T")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)  # as openai writes bodies
# what openai would otherwise make anew for each request: copies of its defaults, and a key that it does not send
_SAID: Any = {"headers": {}, "params": {}, "max_retries": 0, "timeout": None, "idempotency_key": "unsent"}


class Turn(Protocol):
    """When a request may be sent, and how long it may take then."""

    @property
    def timeout(self) -> float:
        """Seconds from when it is sent to the last byte of the answer."""

    async def take(self) -> None:
        """Wait until the request may be sent; at once where that is known.

        Raises:
            NotSent: it must not be sent.
        """

    async def begin(self) -> None:
        """`take`, and note that it is sent now."""

    def arrived(self) -> None:
        """An answer of status 2xx has come as a whole, and is not read yet."""


class NotSent(Exception):
    """A request must not be sent, with the reason why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Late(Exception):
    """No answer came in time."""


class Transport:
    """Sends JSON to ``address``, below ``base_url``; for one event loop.

    Args:
        base_url, address: where to.
        key: API key; openai insists on one, servers without keys ignore it.
    """

    def __init__(self, base_url: str, address: str, key: str) -> None:
        import openai

        # Attempts have their own timeout: openai's is per read, and a server that drips never meets it.
        self._openai = openai.AsyncOpenAI(
            base_url=base_url, api_key=key, timeout=None, max_retries=0, http_client=_http_client(self)
        )
        self._address = address
        self.wire = wire_to(address)
        self.head: bytes | None = None  # of all requests over the wire, once openai has built one
        self._first: asyncio.Event | None = None  # set when it has, or has failed to

    async def post(self, body: Mapping[str, Any], turn: Turn) -> Response:
        """Send ``body`` in ``turn``; the answer, whatever its status.

        Raises:
            NotSent: as ``turn.begin``.
            Late: no answer came in time.
            OSError, openai.OpenAIError: none came.
        """
        if self.wire is not None and self.head is None:
            await turn.take()  # some that wait for the first have their places: so must the first
        while self.wire is not None and self.head is None:
            if self._first is None or self._first.is_set():
                self._first = asyncio.Event()
                try:
                    return await self._by_openai(body, turn)
                finally:
                    self._first.set()
            await self._first.wait()
        head = self.head
        if self.wire is not None and head is not None:
            content = _COMPACT.encode(body).encode()
            await turn.take()
            came = await self.over_wire(head, content, turn)
            if came is not None:
                return came
        return await self._by_openai(body, turn)

    async def over_wire(self, head: bytes, content: bytes, turn: Turn) -> Response | None:
        """The answer to a request, or None where the wire was given up: the endpoint redirects."""
        wire = self.wire
        if wire is None:
            return None
        await turn.begin()

        def arrived(came: Response) -> None:
            if 200 <= came.status < 300:
                turn.arrived()

        length = b"\r\nContent-Length: %d\r\n\r\n" % len(content)
        came = await within(turn.timeout, wire.request(head + length, content, arrived))
        if not 300 <= came.status < 400:
            return came
        self.give_up_wire()
        return None

    def give_up_wire(self) -> None:
        """Leave all further requests to openai."""
        if self.wire is not None:
            self.wire.retire()
            self.wire = None

    def begun(self, head: bytes | None) -> None:
        """Openai has built a request, with that head, or with None if the wire cannot send it."""
        self.head = head
        if head is None:
            self.give_up_wire()
        assert self._first is not None
        self._first.set()

    async def _by_openai(self, body: Mapping[str, Any], turn: Turn) -> Response:
        import openai

        reset = TURN.set(turn)
        try:
            # Not `chat.completions.create`: its models of request and reply cost as much time as the transport. The
            # whole address, for joining one for each request takes time, too.
            answer: Any = await self._openai.post(
                self._address, cast_to=http_library().Response, body=body, options=_SAID
            )
        except openai.APIStatusError as error:
            answer = error.response
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, NotSent | Late):  # what some versions of openai do not know, they wrap
                raise error.__cause__ from None
            raise
        finally:
            TURN.reset(reset)
        headers = [(name.lower(), value) for name, value in answer.headers.raw]
        return Response(answer.status_code, headers, answer.content)

    async def close(self) -> None:
        """Close all connections."""
        self.give_up_wire()
        await self._openai.close()


TURN: ContextVar[Turn] = ContextVar("TURN")
"""The turn of what the current task sends by openai's client."""


def http_library() -> Any:
    """The module of the HTTP library that openai is built on: it has been ``httpx`` and is ``httpx2``."""
    import openai

    base: Any = openai.DefaultAsyncHttpxClient
    return sys.modules[next(one.__module__ for one in base.__mro__ if one.__name__ == "AsyncClient").partition(".")[0]]


def _http_client(transport: Transport) -> Any:
    """Openai's HTTP client for aiohttp or, where that is missing, openai's default; sending in turns."""
    import openai

    try:
        return _in_turns(openai.DefaultAioHttpClient, transport)
    except RuntimeError:  # without aiohttp
        return _in_turns(openai.DefaultAsyncHttpxClient, transport)


def _in_turns(base: Any, transport: Transport) -> Any:
    class InTurns(base):  # type: ignore[misc]
        """Sends each request in the current task's turn, over the wire where there is one."""

        async def send(self, request: Any, **how: Any) -> Any:
            turn = TURN.get()
            await turn.take()
            if transport.wire is not None:
                transport.begun(_head(request))
            if transport.head is not None:
                came = await transport.over_wire(transport.head, request.read(), turn)
                if came is not None:
                    library = http_library()
                    return library.Response(came.status, headers=came.headers, content=came.content, request=request)
            await turn.begin()
            return await within(turn.timeout, super().send(request, **how))

    return InTurns(timeout=None)


def _head(request: Any) -> bytes | None:
    """The head of a request without its length and what is of one connection; None where only openai can send it."""
    if request.method != "POST":
        return None
    # not Accept-Encoding, so that nothing comes compressed
    left_out = (b"accept-encoding", b"connection", b"content-length", b"transfer-encoding")
    fields = [name + b": " + value for name, value in request.headers.raw if name.lower() not in left_out]
    head = b"\r\n".join([b"POST " + request.url.raw_path + b" HTTP/1.1", *fields])
    # where a header has a line's end in it, openai's library knows what to say
    return head if head.count(b"\r") == head.count(b"\n") == len(fields) else None


def wire_to(address: str) -> Wire | None:
    """A wire to the host of ``address``, if that is plain HTTP and no proxy is set for it."""
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname or parts.username or not address.isascii():
        return None
    proxies = urllib.request.getproxies()
    proxied = proxies.get("http") or proxies.get("all")
    if proxied and not urllib.request.proxy_bypass(parts.hostname):
        return None
    return Wire(parts.hostname, parts.port or 80)


async def within(seconds: float, work: Coroutine[Any, Any, _T]) -> _T:
    """What ``work`` gives.

    Raises:
        Late: it takes more than so many ``seconds``.
    """
    if sys.version_info < (3, 11):
        try:
            return await asyncio.wait_for(work, seconds)
        except asyncio.TimeoutError:
            raise Late from None
    try:
        async with asyncio.timeout(seconds) as limit:  # no task of its own
            return await work
    except TimeoutError:
        if limit.expired():
            raise Late from None
        raise  # the system's

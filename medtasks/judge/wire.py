"""HTTP/1.1 to one plain ``http`` endpoint over persistent connections: whole requests out, whole responses in.

General clients spend more processor time on a request than all else that a verdict needs. What is left out here is what
a chat API on plain HTTP does not need: streams, cookies, redirects, proxies, pools with locks and queues.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

__all__ = ["Response", "Wire"]

MAX_HEAD = 64 * 2**10  # bytes
IDLE = 4.0  # seconds; servers close idle connections after five or more, and a request must not meet that
_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True)
class Response:
    """A response that has come as a whole: ``content`` as sent, chunks joined, not decompressed."""

    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes


class Wire:
    """Connections to one host and port, opened as needed: no more than requests were under way at once.

    For one event loop.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[_Connection] = []  # the last to become idle is the first to be used
        self._all: set[_Connection] = set()
        self._retired = False

    async def request(self, head: bytes, body: bytes, arrived: Callable[[Response], None] = lambda _: None) -> Response:
        """Send the bytes of one request and wait for the response; cancelling closes the connection.

        ``arrived`` is called as the response's last byte comes, before those that wait for responses go on: what it
        lets in is sent before this and other responses are read.

        Raises:
            OSError: there is no connection, it breaks, or what comes is no HTTP.
        """
        connection = self._rested() or await self._opened()
        answer = connection.send(head + body, arrived)
        try:
            return await answer
        except BaseException:
            if connection.owes(answer):
                connection.abort()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._retired = True
        for connection in list(self._all):
            connection.abort()

    def retire(self) -> None:
        """Close all connections, those with a request under way after its answer."""
        self._retired = True
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def rest(self, connection: _Connection) -> None:
        """Keep a connection that has nothing under way for another request, if it is good for one."""
        if connection.reusable and not self._retired:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.abort()

    def _rested(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and time.monotonic() - connection.idle_since < IDLE:
                return connection
            connection.abort()
        return None

    async def _opened(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: _Connection(self, self._all), self._host, self._port)
        return connection


class _Connection(asyncio.Protocol):
    """One connection with at most one request under way."""

    def __init__(self, wire: Wire, register: set[_Connection]) -> None:
        self._wire, self._register = wire, register
        self._answer: asyncio.Future[Response] | None = None  # while a request is under way
        self._arrived: Callable[[Response], None] = lambda _: None
        self._came = bytearray()
        self._head: _Head | None = None
        self._closed = False
        self.idle_since = 0.0

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent."""
        return not (self._closed or self._came or self._transport.is_closing())

    def send(self, request: bytes, arrived: Callable[[Response], None]) -> asyncio.Future[Response]:
        self._answer, self._arrived = asyncio.get_running_loop().create_future(), arrived
        self._transport.write(request)
        return self._answer

    def owes(self, answer: asyncio.Future[Response]) -> bool:
        """Whether the response to that request is still to come."""
        return self._answer is answer

    def abort(self) -> None:
        self._closed = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._register.add(self)

    def data_received(self, data: bytes) -> None:
        self._came += data
        if self._answer is None or self._answer.done():
            self.abort()  # nobody asked
            return
        self._read(ended=False)

    def connection_lost(self, error: Exception | None) -> None:
        self._closed = True
        self._register.discard(self)
        if self._answer is None or self._answer.done() or self._read(ended=error is None):
            return
        under_way = "in the middle of its answer" if self._came or self._head else "before it answered"
        self._fail(error or f"the endpoint closed the connection {under_way}")

    def _read(self, *, ended: bool) -> bool:
        """Whether what has come, and perhaps ``ended``, settles the request."""
        try:
            response = self._parsed(ended=ended)
        except ValueError as error:
            self._fail(error)
            return True
        if response is None:
            return False
        answer, self._answer = self._answer, None
        assert answer is not None
        self._wire.rest(self)
        self._arrived(response)
        # Not at once: those that `arrived` has let in go first, for they only send what is ready.
        asyncio.get_running_loop().call_soon(_deliver, answer, response)
        return True

    def _fail(self, problem: object) -> None:
        assert self._answer is not None
        self._closed = True
        self._answer.set_exception(problem if isinstance(problem, OSError) else ConnectionError(str(problem)))

    def _parsed(self, *, ended: bool) -> Response | None:
        """The response, where it has come as a whole; ``ended``: nothing more comes.

        Raises:
            ValueError: it is no HTTP.
        """
        while self._head is None or self._head.interim:
            self._head = self._read_head()
            if self._head is None:
                return None
        head = self._head
        content: bytes | None
        if head.chunked:
            content = _unchunked(self._came)
        elif head.length is not None:
            content = bytes(self._came[: head.length]) if len(self._came) >= head.length else None
            if content is not None:
                del self._came[: head.length]
        else:
            content = bytes(self._came) if ended else None
        if content is None:
            return None
        self._head = None
        self._closed = self._closed or head.last
        return Response(head.status, head.headers, content)

    def _read_head(self) -> _Head | None:
        end = self._came.find(b"\r\n\r\n", 0, MAX_HEAD)
        if end < 0:
            if len(self._came) >= MAX_HEAD:
                raise ValueError("the endpoint's answer is no HTTP: its head has no end")
            return None
        head = _Head(bytes(self._came[:end]))
        del self._came[: end + 4]
        return head


def _deliver(answer: asyncio.Future[Response], response: Response) -> None:
    if not answer.done():  # it may have been cancelled
        answer.set_result(response)


class _Head:
    """What the head of a response says."""

    def __init__(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        version, _, rest = first.partition(b" ")
        status = rest[:3]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not (len(status) == 3 and status.isdigit()):
            raise ValueError(f"the endpoint's answer is no HTTP/1: it begins with {first[:40]!r}")
        self.status = int(status)
        self.headers: list[tuple[bytes, bytes]] = []
        self.length: int | None = 0 if self.status in _NO_BODY else None
        self.chunked = False
        self.last = version == b"HTTP/1.0"  # the connection is not for further requests
        self.interim = 100 <= self.status < 200
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon:
                raise ValueError(f"the endpoint's answer is no HTTP/1: {line[:40]!r} is no header")
            name, value = name.lower(), value.strip()
            self.headers.append((name, value))
            if name == b"content-length" and self.status not in _NO_BODY:
                if not (value.isdigit() and len(value) < 19):
                    raise ValueError(f"the endpoint's answer is no HTTP/1: Content-Length is {value[:40]!r}")
                self.length = int(value)
            elif name == b"transfer-encoding" and self.status not in _NO_BODY:
                self.chunked = value.lower() == b"chunked"
                if not self.chunked:
                    raise ValueError(f"the endpoint's answer has the transfer encoding {value[:40]!r}")
            elif name == b"connection":
                self.last = b"close" in value.lower() or (self.last and b"keep-alive" not in value.lower())
        if self.length is None and not self.chunked:
            self.last = True  # its end is the connection's


def _unchunked(came: bytearray) -> bytes | None:
    """The chunks of ``came`` joined, and ``came`` without them; None where the last has not come.

    Raises:
        ValueError: these are no chunks.
    """
    parts: list[bytes] = []
    position = 0
    while (end := came.find(b"\r\n", position)) >= 0:
        size = bytes(came[position:end]).partition(b";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            raise ValueError(f"the endpoint's answer is no HTTP/1: {size[:40]!r} is no chunk's length") from None
        if length == 0:
            close = came.find(b"\r\n\r\n", end)  # at once, or after trailers
            if close < 0:
                return None
            del came[: close + 4]
            return b"".join(parts)
        position = end + 2 + length + 2
        if length < 0 or bytes(came[position - 2 : position]) not in (b"\r\n", b"", b"\r"):
            raise ValueError("the endpoint's answer is no HTTP/1: a chunk does not end where it should")
        parts.append(bytes(came[end + 2 : end + 2 + length]))
    return None

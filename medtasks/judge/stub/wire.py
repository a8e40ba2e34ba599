"""HTTP/1.1, as far as a stub needs it: requests parsed from a connection, replies written to it.

A protocol with callbacks, not streams and a task for each connection: the stub shares its machine with the clients that
are measured against it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

__all__ = ["Connection", "HttpError", "Reply", "Request"]

_MAX_HEAD = 64 * 2**10  # bytes
_MAX_BODY = 64 * 2**20  # bytes; a window of frames as base64 stays well below
_LINGER = 2.0  # seconds
_NUMBER = re.compile(r"[0-9]{1,18}")
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 411: "Length Required"}
_REASONS |= {413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error"}


class HttpError(Exception):
    """A request that is answered with an error ``status`` and counted as ``outcome``."""

    def __init__(self, status: int, message: str, *, outcome: str = "bad_request", param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.outcome, self.param = status, outcome, param


@dataclass
class Request:
    """One request; ``body`` is filled when it has come as a whole."""

    method: str
    path: str
    length: int
    with_key: bool
    keep: bool
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    status: int
    document: Mapping[str, Any]
    headers: tuple[str, ...] = ()
    delivery: Literal["whole", "cut", "overrun"] = "whole"


class Connection(asyncio.Protocol):
    """A client's connection: its requests are served in their order, each after the former was answered.

    Args:
        serve: called with each request, and with this connection, on which it calls `answer` or `hang_up`, then or
            later.
        refuse: makes the reply to what is no request.
        opened, closed: told of this connection.

    ``gone`` says that the client has closed the connection, or its sending half.
    """

    def __init__(
        self,
        serve: Callable[[Request, Connection], None],
        refuse: Callable[[HttpError], Reply],
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
    ) -> None:
        self._serve, self._refuse, self._opened, self._closed = serve, refuse, opened, closed
        self._came = bytearray()
        self._request: Request | None = None  # its body is under way, or it is being served
        self._served = False  # the request is being served
        self._over = False  # nothing that comes is read any more
        self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        if not self._over:
            self._came += data
            self._advance()

    def eof_received(self) -> bool:
        self.gone = True
        if self._over:
            return False
        if not self._served:
            if self._request is not None:
                self._answer_error(HttpError(400, "the body is shorter than its Content-Length"))
            elif self._came:
                self._answer_error(HttpError(400, "the head of the request ends early"))
            else:
                return False
        return True  # the other half stays open for the answer

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.gone = self._over = True
        self._closed(self)

    def answer(self, reply: Reply) -> None:
        """Send the answer to the request that is being served; go on with the next, where the connection stays."""
        assert self._request is not None
        keep = self._request.keep and reply.delivery == "whole"
        self._request, self._served = None, False
        self._transport.write(_written(reply, keep))
        if keep:
            self._advance()
        else:
            self._end(linger=reply.status >= 400)

    def hang_up(self) -> None:
        """Close without a further word."""
        self._over = True
        self._transport.close()

    def _advance(self) -> None:
        """Serve the next request, where it has come."""
        try:
            while not (self._served or self._over):
                if self._request is None:
                    self._request = self._head()
                    if self._request is None:
                        break
                request = self._request
                if len(self._came) < request.length:
                    break
                request.body = bytes(self._came[: request.length])
                del self._came[: request.length]
                self._served = True
                try:
                    self._serve(request, self)
                except HttpError as error:
                    self.answer(self._refuse(error))
                    return  # `answer` went on
            if self.gone and not (self._served or self._over or self._came):
                self.hang_up()
        except HttpError as error:
            self._answer_error(error)

    def _answer_error(self, error: HttpError) -> None:
        self._transport.write(_written(self._refuse(error), keep=False))
        self._end(linger=True)

    def _end(self, *, linger: bool) -> None:
        self._over = True
        self._came.clear()
        if not linger or self.gone:
            self._transport.close()
            return
        # Closing on unread input resets the connection, and the client loses the answer: read on for a moment.
        self._transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER, self._transport.close)

    def _head(self) -> Request | None:
        """The head of the next request, without its body; None where it has not come yet."""
        end = self._came.find(b"\r\n\r\n", 0, _MAX_HEAD)
        if end < 0:
            if len(self._came) >= _MAX_HEAD:
                raise HttpError(400, "the head of the request is too long")
            return None
        head = self._came[:end].decode("latin-1")
        del self._came[: end + 4]
        return _request(head)


def _request(head: str) -> Request:
    first, *lines = head.split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise HttpError(400, "this is not an HTTP/1.1 request")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise HttpError(400, "this is not an HTTP/1.1 request")
        headers[name.strip().casefold()] = value.strip()
    if "transfer-encoding" in headers or (parts[0] == "POST" and "content-length" not in headers):
        raise HttpError(411, "send the body with a Content-Length")
    length = headers.get("content-length", "0")
    if not _NUMBER.fullmatch(length):
        raise HttpError(400, "Content-Length is not a number")
    if int(length) > _MAX_BODY:
        raise HttpError(413, f"the body has {length} bytes, at most {_MAX_BODY} are taken")
    asked = headers.get("connection", "keep-alive" if parts[2] == "HTTP/1.1" else "close").casefold()
    path = parts[1].partition("?")[0]
    return Request(parts[0], path, int(length), "authorization" in headers, "close" not in asked)


def _written(reply: Reply, keep: bool) -> bytes:
    """The bytes to send; ``keep``: whether the connection stays open."""
    body = json.dumps(reply.document).encode("ascii")
    head = [
        f"HTTP/1.1 {reply.status} {_REASONS[reply.status]}",
        "Content-Type: application/json",
        f"Content-Length: {len(body) + (reply.delivery == 'overrun')}",
        f"Connection: {'keep-alive' if keep else 'close'}",
        *reply.headers,
    ]
    sent = body[: len(body) // 2] if reply.delivery == "cut" else body
    return "\r\n".join([*head, "", ""]).encode("latin-1") + sent

"""HTTP/1.1, as far as a stub needs it: requests read from a stream, replies written to one."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["HttpError", "Reply", "Request", "read_request", "swallow", "written"]

_MAX_BODY = 64 * 2**20  # bytes; a window of frames as base64 stays well below
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 411: "Length Required"}
_REASONS |= {413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error"}


class HttpError(Exception):
    """A request that is answered with an error ``status`` and counted as ``outcome``."""

    def __init__(self, status: int, message: str, *, outcome: str = "bad_request", param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.outcome, self.param = status, outcome, param


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes
    with_key: bool
    keep: bool


@dataclass(frozen=True)
class Reply:
    status: int
    document: Mapping[str, Any]
    headers: tuple[str, ...] = ()
    delivery: Literal["whole", "cut", "overrun"] = "whole"


def written(reply: Reply, keep: bool) -> bytes:
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


async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read on for a moment: closing on unread input resets the connection, and the client loses the answer."""
    writer.write_eof()
    deadline = time.monotonic() + 2
    with suppress(asyncio.TimeoutError):
        while await asyncio.wait_for(reader.read(2**16), deadline - time.monotonic()):
            pass


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """One HTTP/1 request; ``None`` where the client closed the connection between two."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise HttpError(400, "the head of the request ends early") from None
    except asyncio.LimitOverrunError:
        raise HttpError(400, "the head of the request is too long") from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0") or not all(":" in line for line in lines):
        raise HttpError(400, "this is not an HTTP/1.1 request")
    headers = {name.strip().casefold(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "transfer-encoding" in headers or (parts[0] == "POST" and "content-length" not in headers):
        raise HttpError(411, "send the body with a Content-Length")
    length = headers.get("content-length", "0")
    if not re.fullmatch(r"[0-9]{1,18}", length):
        raise HttpError(400, "Content-Length is not a number")
    if int(length) > _MAX_BODY:
        raise HttpError(413, f"the body has {length} bytes, at most {_MAX_BODY} are taken")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        raise HttpError(400, "the body is shorter than its Content-Length") from None
    asked = headers.get("connection", "keep-alive" if parts[2] == "HTTP/1.1" else "close").casefold()
    return Request(parts[0], parts[1].partition("?")[0], body, "authorization" in headers, "close" not in asked)

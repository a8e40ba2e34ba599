"""What openai's client is made of here: for plain HTTP without a proxy, as little as there can be.

At 64 requests in flight, openai's ordinary client and its HTTP library spend more processor time on a request than all
else that a verdict takes. Both are replaced where it matters and kept for all the rest: requests whose only difference
is their body get the head that openai built for the first one, and go over :class:`medtasks.judge.wire.Wire`.
"""

from __future__ import annotations

import functools
import json
import sys
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from medtasks.judge.wire import Wire

if TYPE_CHECKING:
    import openai

__all__ = ["http_library", "openai_client"]

_OURS = "medtasks"  # the extension that holds the bytes of a request that was built for the wire


@dataclass(frozen=True)
class _Bytes:
    """A request: its head without the line that says how long ``content`` is."""

    head: bytes
    content: bytes


def openai_client(base_url: str, address: str, key: str) -> openai.AsyncOpenAI:
    """A client without timeouts and retries for POST requests of JSON to ``address``, below ``base_url``.

    Its HTTP client is openai's for aiohttp or, where that is missing, openai's default; and a thin layer over it where
    ``address`` is plain HTTP and no proxy is set for it.
    """
    import openai

    given: dict[str, Any] = {"base_url": base_url, "api_key": key, "timeout": None, "max_retries": 0}
    if not _plain(address):
        return openai.AsyncOpenAI(**given, http_client=_http_client(lambda base: base(timeout=None)))
    client: openai.AsyncOpenAI = _lean()(**given, http_client=_http_client(lambda base: _thin(base)(address)))
    return client


def http_library() -> Any:
    """The module of the HTTP library that openai is built on: it has been ``httpx`` and is ``httpx2``."""
    import openai

    base: Any = openai.DefaultAsyncHttpxClient
    return sys.modules[next(one.__module__ for one in base.__mro__ if one.__name__ == "AsyncClient").partition(".")[0]]


def _http_client(made: Any) -> Any:
    import openai

    try:
        return made(openai.DefaultAioHttpClient)
    except RuntimeError:  # without aiohttp
        return made(openai.DefaultAsyncHttpxClient)


def _plain(address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname or not address.isascii():
        return False
    proxies = urllib.request.getproxies()
    proxied = proxies.get("http") or proxies.get("all")
    return not proxied or bool(urllib.request.proxy_bypass(parts.hostname))


@functools.cache
def _lean() -> Any:
    import openai

    class AsyncOpenAI(openai.AsyncOpenAI):  # servers are told this name
        """Has the first request built by openai, and further ones like it."""

        _first: Any = None

        # the hook by which openai's own variants change requests; where a version has it no more, nothing is gained
        def _build_request(self, options: Any, **more: Any) -> Any:
            if self._first is not None:
                try:
                    content = _document(options.json_data)
                except (TypeError, ValueError):
                    pass  # it knows how to send more than JSON has, or what to say
                else:
                    thin: Any = self._client
                    return thin.like(self._first, content)
            request: Any = super()._build_request(options, **more)
            if request.extensions.get(_OURS) is not None:
                self._first = request
            return request

    return AsyncOpenAI


@functools.cache
def _thin(base: Any) -> Any:
    library = http_library()

    class Thin(base):  # type: ignore[misc]
        """Sends POST requests to one address over a `Wire`, until the endpoint redirects; all others as ever."""

        def __init__(self, address: str) -> None:
            super().__init__(timeout=None)
            self._address, self._url, self._host = address, library.URL(address), urlsplit(address).netloc
            self._wire: Wire | None = Wire(self._url.host, self._url.port or 80)

        def build_request(self, method: str, url: Any, **parts: Any) -> Any:
            ordinary = super().build_request(method, url, **parts)
            if self._wire is None or ordinary.method != "POST" or str(url) != self._address or parts.get("files"):
                return ordinary
            # not Accept-Encoding, so that nothing comes compressed, nor what is of this connection or this body
            left_out = ("accept-encoding", "connection", "content-length")
            fields = [name + b": " + value for name, value in ordinary.headers.raw if _name(name) not in left_out]
            head = b"\r\n".join([b"POST " + self._url.raw_path + b" HTTP/1.1", *fields])
            if head.count(b"\r") != len(fields) or head.count(b"\n") != len(fields):
                return ordinary  # it knows what to say about such headers
            ordinary.extensions[_OURS] = _Bytes(head, ordinary.read())
            return ordinary

        def like(self, first: Any, content: bytes) -> Any:
            """A request that differs from ``first``, which `build_request` made, by its body alone."""
            sent = _Bytes(first.extensions[_OURS].head, content)
            if self._wire is None:
                return self._ordinary(first, sent)
            stream = library.ByteStream(content)
            return library.Request("POST", self._url, headers=first.headers, stream=stream, extensions={_OURS: sent})

        def _ordinary(self, request: Any, sent: _Bytes) -> Any:
            headers = [(name, value) for name, value in request.headers.raw if _name(name) != "content-length"]
            return super().build_request("POST", self._url, headers=headers, content=sent.content)

        async def send(self, request: Any, *, stream: bool = False, **how: Any) -> Any:
            sent: _Bytes | None = request.extensions.get(_OURS)
            if sent is None:
                return await super().send(request, stream=stream, **how)
            if self._wire is not None:
                length = b"\r\nContent-Length: %d\r\n\r\n" % len(sent.content)
                came = await self._wire.request(sent.head + length, sent.content)
                if not 300 <= came.status < 400:
                    return library.Response(came.status, headers=came.headers, content=came.content, request=request)
                self._wire.close()
                self._wire = None
            return await super().send(self._ordinary(request, sent), stream=stream, **how)

        async def aclose(self) -> None:
            if self._wire is not None:
                self._wire.close()
            await super().aclose()

    return Thin


def _document(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _name(header: bytes) -> str:
    return header.decode("latin-1").lower()

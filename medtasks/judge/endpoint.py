"""A judge's endpoint over HTTP: one attempt at one request."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import certifi

from medtasks.core.errors import UsageError
from medtasks.core.text import well_formed
from medtasks.judge.reply import (
    Ending,
    FailedAttempt,
    JudgeAnswer,
    UnreadableReply,
    is_refusal,
    problem_of,
    read_completion,
    seconds_to_wait,
)
from medtasks.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from aiohttp import ClientSession, StreamReader

LONGEST_WAIT = 300.0  # seconds; longer waits fail the request
LONGEST_REASON = 300  # characters
LARGEST_REPLY = 4 * 2**20  # bytes, unpacked: about a million tokens of reasoning
SHORTEST_SECRET = 8
"""Characters; shorter keys are placeholders such as "none", which ordinary words contain."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
IDLE = 4.0  # seconds that an unused connection is kept; servers close theirs after five or more


Messages: TypeAlias = "tuple[dict[str, Any], ...]"  # messages of OpenAI's chat API
Attempt: TypeAlias = "JudgeAnswer | FailedAttempt"


class ReplyTooLarge(Exception):
    """A reply of more than `LARGEST_REPLY` bytes, which is not read to its end."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {LARGEST_REPLY // 2**20} MB, of which nothing is kept; lower `max_tokens`"
        )


class Endpoint:
    """A chat API, used from one event loop. Nothing it returns contains the API key."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._key = settings.api_key()
        self._address = settings.base_url.rstrip("/") + "/chat/completions"
        self._proxy = _proxy_for(self._address)
        self._session: ClientSession | None = None

    @property
    def state(self) -> str:
        """What requests are waiting for."""
        return ""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def attempt(self, messages: Messages, schema: dict[str, Any] | None) -> Attempt:
        """Ask once, with ``schema`` as ``response_format`` unless it is None."""
        import aiohttp

        # opened late: aiohttp takes a while to import, and stored verdicts need no session
        if self._session is None:
            self._session = self._opened()
        data = self._body(messages, schema).encode()
        try:
            # a redirect would send the prompts to an address that the user did not name
            request = self._session.post(
                self._address, data=data, proxy=self._proxy, allow_redirects=False
            )
            async with request as response:
                body = await _bounded(response.content)
        except ReplyTooLarge as error:
            return self._failed_attempt("bad reply", error, again=False)
        except asyncio.TimeoutError:
            limit = f"{self._settings.timeout:g} s"
            return FailedAttempt(f"timeout: no answer within {limit}", again=True)
        except (aiohttp.ClientError, OSError) as error:
            return self._failed_attempt("connection", error, again=True)
        return self._outcome(response.status, response.headers, body.decode("utf-8", "replace"))

    def _opened(self) -> ClientSession:
        import aiohttp

        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        tls = ssl.create_default_context()
        # too, as some Python installations find no others
        tls.load_verify_locations(certifi.where())
        # the rate limiter decides how many requests are in flight; the time limit covers an attempt
        # as a whole
        return aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout),
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=tls),
        )

    def _body(self, messages: Messages, schema: dict[str, Any] | None) -> str:
        settings = self._settings
        body: dict[str, Any] = {"model": settings.model, "messages": messages}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if settings.token_limit is not None:
            body[settings.token_limit.field] = settings.token_limit.most
        if schema is not None:
            named = {"name": "verdict", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return well_formed(
            json.dumps(body | settings.extra_body, ensure_ascii=False, allow_nan=False)
        )

    def _outcome(self, status: int, headers: Mapping[str, str], text: str) -> Attempt:
        if 200 <= status < 300:
            try:
                answer = read_completion(self._redacted(text))
            except UnreadableReply as error:
                return self._failed_attempt("bad reply", error, again=True)
            # once more: JSON may have escaped the key
            return replace(answer, text=self._redacted(answer.text))
        detail = problem_of(text)
        if is_refusal(text):
            return JudgeAnswer(self._redacted(well_formed(detail)), ending=Ending.REFUSED)
        if status in REDIRECTS:
            target = headers.get("Location", "nowhere")
            detail = (
                f"redirects to {target}, which is not followed; "
                "name the address of the API as base_url"
            )
        again = status in (408, 409, 429) or status >= 500
        wait = seconds_to_wait(headers)
        if again and wait is not None and wait > LONGEST_WAIT:
            again = False
            detail = f"asks for a wait of {wait:.0f} s, more than {LONGEST_WAIT:.0f}: {detail}"
        failed = self._failed_attempt(f"http {status}", detail, again=again)
        return replace(failed, status=status, wait=wait)

    def _failed_attempt(self, kind: str, detail: object, *, again: bool) -> FailedAttempt:
        text = " ".join(self._redacted(well_formed(str(detail))).split()) or type(detail).__name__
        return FailedAttempt(f"{kind}: {text}"[:LONGEST_REASON], again)

    def _redacted(self, text: str) -> str:
        """The text without the API key."""
        if self._key is None or len(self._key) < SHORTEST_SECRET:
            return text
        return text.replace(self._key, "[API key]")


def _proxy_for(address: str) -> str | None:
    """The address of the proxy that the environment names, or None.

    aiohttp's ``trust_env`` also takes passwords from ~/.netrc and fails where an API key is sent.
    """
    parts = urlsplit(address)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise UsageError(
            f"the proxy for {parts.hostname} in the environment has scheme {scheme!r}, expected "
            f"http or https; set another in {parts.scheme}_proxy, or add {parts.hostname} to "
            "no_proxy."
        )
    return proxy


async def _bounded(content: StreamReader) -> bytes:
    """All of a reply, whose bytes are counted as they are unpacked."""
    body = bytearray()
    async for block in content.iter_any():
        body += block
        if len(body) > LARGEST_REPLY:
            raise ReplyTooLarge
    return bytes(body)

"""One attempt at one request to a judge, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from medtasks.core.errors import UsageError
from medtasks.core.text import well_formed
from medtasks.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from aiohttp import ClientSession

LARGEST_BODY = 8 * 2**20  # bytes of a response; a long verdict has some 100 kB
LONGEST_WAIT = 300.0  # seconds; longer waits fail the request
LONGEST_REASON = 300  # characters
MOST_TOKENS = 2**53  # a larger count is an error of the endpoint
SHORTEST_SECRET = 8  # characters; shorter keys are placeholders such as "none", which ordinary words contain
REDIRECTS = frozenset({301, 302, 303, 307, 308})
IDLE = 4.0  # seconds that an unused connection is kept; servers close theirs after five or more


Messages: TypeAlias = "tuple[dict[str, Any], ...]"
"""Messages of OpenAI's chat API."""


@dataclass(frozen=True)
class JudgeAnswer:
    """A judge's answer, not yet parsed as a verdict.

    ``text`` is the message's content or its refusal; it may be empty. Tokens are as the endpoint reports them; if it
    does not, they are 0 and ``metered`` is false.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    refusal: bool
    metered: bool = True


@dataclass(frozen=True)
class FailedAttempt:
    """Why an attempt failed, whether to try again, and how many seconds the endpoint asks to wait."""

    reason: str
    again: bool
    status: int | None = None
    wait: float | None = None


class Endpoint:
    """A chat API, used from one event loop. Nothing it returns contains the API key.

    Raises:
        UsageError: the API key is malformed, or the environment names a proxy that cannot be used.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._key = settings.api_key()
        self._address = settings.base_url.rstrip("/") + "/chat/completions"
        # not aiohttp's trust_env, which also takes passwords from ~/.netrc and fails where an API key is sent
        parts, proxies = urlsplit(self._address), urllib.request.getproxies()
        self._proxy = proxies.get(parts.scheme) or proxies.get("all")
        if not self._proxy or urllib.request.proxy_bypass(parts.hostname or ""):
            self._proxy = None
        elif (scheme := urlsplit(self._proxy).scheme) not in ("http", "https"):
            raise UsageError(
                f"the proxy for {parts.hostname} in the environment has scheme {scheme!r}, expected http or https; set "
                f"another in {parts.scheme}_proxy, or add {parts.hostname} to no_proxy."
            )
        self._session: ClientSession | None = None

    @property
    def state(self) -> str:
        """What requests are waiting for, if that is known."""
        return ""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def attempt(self, messages: Messages, schema: dict[str, Any] | None) -> JudgeAnswer | FailedAttempt:
        """Ask once, with ``schema`` as ``response_format`` unless it is None."""
        import aiohttp

        if self._session is None:  # not needed if all verdicts are stored, and aiohttp takes a while to import
            headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
            if self._key is not None:
                headers["Authorization"] = f"Bearer {self._key}"
            tls: ssl.SSLContext | bool = True
            if self._address.startswith("https:"):
                import certifi

                tls = ssl.create_default_context()
                tls.load_verify_locations(certifi.where())  # too, as some Python installations find no others
            # the rate limiter decides how many requests are in flight; the time limit covers an attempt as a whole
            self._session = aiohttp.ClientSession(
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=tls),
            )
        data = self._body(messages, schema).encode()
        body = bytearray()
        try:
            # a redirect would send the prompts to an address that the user did not name
            request = self._session.post(self._address, data=data, proxy=self._proxy, allow_redirects=False)
            async with request as response:
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > LARGEST_BODY:  # the rest is not read
                        reason = f"the response has more than {LARGEST_BODY // 2**20} MB"
                        return self._failed_attempt("bad reply", reason, again=False)
        except asyncio.TimeoutError:
            return FailedAttempt(f"timeout: no answer within {self._settings.timeout:g} s", again=True)
        except (aiohttp.ClientError, OSError) as error:
            return self._failed_attempt("connection", error, again=True)
        return self._outcome(response.status, response.headers, body.decode("utf-8", "replace"))

    def _body(self, messages: Messages, schema: dict[str, Any] | None) -> str:
        settings = self._settings
        body: dict[str, Any] = {"model": settings.model, "messages": messages}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            body["max_tokens"] = settings.max_tokens
        if schema is not None:
            named = {"name": "verdict", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return well_formed(json.dumps(body | settings.extra_body, ensure_ascii=False, allow_nan=False))

    def _outcome(self, status: int, headers: Mapping[str, str], text: str) -> JudgeAnswer | FailedAttempt:
        """The answer in a response, or why there is none."""
        if 200 <= status < 300:
            answer = _read(self._redacted(text))
            if isinstance(answer, str):
                return self._failed_attempt("bad reply", answer, again=True)
            return replace(answer, text=self._redacted(answer.text))  # once more: JSON may have escaped the key
        detail = _problem(text)
        if status in REDIRECTS:
            detail = f"redirects to {headers.get('Location', 'nowhere')}, which is not followed; name the "
            detail += "address of the API as base_url"
        again = status in (408, 409, 429) or status >= 500
        wait = _retry_after(headers)
        if again and wait is not None and wait > LONGEST_WAIT:
            again, detail = False, f"asks for a wait of {wait:.0f} s, more than {LONGEST_WAIT:.0f}: {detail}"
        return replace(self._failed_attempt(f"http {status}", detail, again=again), status=status, wait=wait)

    def _failed_attempt(self, kind: str, detail: object, *, again: bool) -> FailedAttempt:
        text = " ".join(self._redacted(well_formed(str(detail))).split()) or type(detail).__name__
        return FailedAttempt(f"{kind}: {text}"[:LONGEST_REASON], again)

    def _redacted(self, text: str) -> str:
        key = self._key
        return text.replace(key, "[API key]") if key and len(key) >= SHORTEST_SECRET else text


def _read(text: str) -> JudgeAnswer | str:
    """The answer in the body of a 200, or what is wrong with the body."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"expected JSON ({type(error).__name__}), found {text[:80]!r}"
    try:
        choice = document["choices"][0]
        refusal, content = choice["message"].get("refusal"), choice["message"].get("content")
    except (TypeError, LookupError, AttributeError):
        return f"expected choices[0].message, found {json.dumps(document, ensure_ascii=False)}"
    if isinstance(content, list):  # content parts, as some gateways answer
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(text for text in texts if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        return f"expected a string as choices[0].message.content, found {type(content).__name__}"
    refused = choice.get("finish_reason") == "content_filter"
    if isinstance(refusal, str) and refusal.strip():
        content, refused = refusal, True
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    prompt, completion = usage.get("prompt_tokens", -1), usage.get("completion_tokens", 0)
    if not all(type(count) is int and 0 <= count < MOST_TOKENS for count in (prompt, completion)):
        return JudgeAnswer(well_formed(content or ""), 0, 0, refused, metered=False)
    return JudgeAnswer(well_formed(content or ""), prompt, completion, refused)


def _problem(text: str) -> str:
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(text)
        error = document.get("error", document) if isinstance(document, dict) else None
        message = error.get("message") if isinstance(error, dict) else error
        # encoded again: escapes in the original might hide the key
        return message if isinstance(message, str) and message.strip() else json.dumps(document, ensure_ascii=False)
    return text.strip() or "the answer is empty"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or a date)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", headers.get(name, "")):
            return float(headers[name]) * unit
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

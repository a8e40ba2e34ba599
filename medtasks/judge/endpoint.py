"""A judge's endpoint: one attempt at one request, made by the `openai` client."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from medtasks.core.errors import UsageError
from medtasks.core.text import well_formed
from medtasks.judge.reply import (
    Ending,
    FailedAttempt,
    JudgeAnswer,
    ReplyTooLarge,
    UnreadableReply,
    is_refusal,
    problem_of,
    read_completion,
)
from medtasks.judge.retry_after import seconds_to_wait
from medtasks.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI

LONGEST_WAIT = 300.0  # seconds; longer waits fail the request
LONGEST_REASON = 300  # characters
SHORTEST_SECRET = 8
"""Characters; shorter keys are placeholders such as "none", which ordinary words contain."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})

Messages: TypeAlias = "tuple[dict[str, Any], ...]"  # messages of OpenAI's chat API
Attempt: TypeAlias = "JudgeAnswer | FailedAttempt"


class Endpoint:
    """A chat API, used from one event loop. Nothing it returns contains the API key."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._key = settings.api_key()
        self._proxy = _proxy_for(settings.base_url)
        self._client: AsyncOpenAI | None = None

    @property
    def state(self) -> str:
        """What requests are waiting for."""
        return ""

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def attempt(self, messages: Messages, schema: dict[str, Any] | None) -> Attempt:
        """Ask once, with ``schema`` as ``response_format`` unless it is None."""
        body = self._body(messages, schema).encode()
        reply = await self._reply(body)
        if isinstance(reply, FailedAttempt):
            return reply
        text = reply.content.decode("utf-8", "replace")
        return self._outcome(reply.status_code, reply.headers, text)

    async def _reply(self, body: bytes) -> Response | FailedAttempt:
        """The reply to a request, of any HTTP status, or why there is none."""
        # imported late: openai takes a while to import, and stored verdicts need no client
        import aiohttp
        import openai

        from medtasks.judge.openai_client import chat_client

        if self._client is None:
            self._client = chat_client(self._settings, self._key, self._proxy)
        try:
            return await asyncio.wait_for(self._post(self._client, body), self._settings.timeout)
        except asyncio.TimeoutError:
            limit = f"{self._settings.timeout:g} s"
            return FailedAttempt(f"timeout: no answer within {limit}", again=True)
        except ReplyTooLarge as error:
            return self._failed_attempt("bad reply", error, again=False)
        except openai.APIStatusError as error:
            return error.response
        except openai.APIConnectionError as error:
            # also APITimeoutError, as which the client reports that a connection was refused
            return self._failed_attempt("connection", error.__cause__ or error, again=True)
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            # which the client passes on from its transport, as when a status line is not text
            return self._failed_attempt("connection", error, again=True)

    async def _post(self, client: AsyncOpenAI, body: bytes) -> Response:
        """The successful reply to a request.

        Not by `client.chat.completions.create`: it compares all messages and the schema with its
        types, which takes half a millisecond, and refuses lone surrogates. Its model of the reply
        is not checked either, and has no place for what other servers answer.
        """
        import openai

        from medtasks.judge.http_library import http

        headers: dict[str, str | openai.Omit] = {"Accept-Encoding": "identity"}
        if self._key is None:
            headers["Authorization"] = openai.omit
        return await client.post(
            "/chat/completions", cast_to=http.Response, content=body, options={"headers": headers}
        )

    def _body(self, messages: Messages, schema: dict[str, Any] | None) -> str:
        """The JSON of a request, with the settings' own fields taking precedence."""
        settings = self._settings
        fields: dict[str, Any] = {"model": settings.model, "messages": messages}
        if settings.temperature is not None:
            fields["temperature"] = settings.temperature
        if settings.token_limit is not None:
            fields[settings.token_limit.field] = settings.token_limit.most
        if schema is not None:
            json_schema = {"name": "verdict", "schema": schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        fields |= settings.extra_body
        return well_formed(json.dumps(fields, ensure_ascii=False, allow_nan=False))

    def _outcome(self, status: int, headers: Mapping[str, str], text: str) -> Attempt:
        """What a reply means: an answer, a refusal, or a failure."""
        if 200 <= status < 300:
            return self._answer_in(text)
        if is_refusal(text):
            refusal = self._redacted(well_formed(problem_of(text)))
            return JudgeAnswer(refusal, ending=Ending.REFUSED)
        return self._failed_status(status, headers, problem_of(text))

    def _answer_in(self, text: str) -> Attempt:
        """The answer in the body of a successful reply."""
        try:
            answer = read_completion(self._redacted(text))
        except UnreadableReply as error:
            return self._failed_attempt("bad reply", error, again=True)
        # once more: JSON may have escaped the key
        return replace(answer, text=self._redacted(answer.text))

    def _failed_status(
        self, status: int, headers: Mapping[str, str], problem: str
    ) -> FailedAttempt:
        """The failure that a status reports, repeated if it may pass and the wait is bearable."""
        detail = problem
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
        """A failure whose reason is of this kind, with ``detail`` on one line."""
        text = self._redacted(well_formed(str(detail)))
        line = " ".join(text.split()) or type(detail).__name__
        return FailedAttempt(f"{kind}: {line}"[:LONGEST_REASON], again)

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

"""One attempt at one request: HTTP there and back, and what became of it."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

from medtasks.errors import UsageError
from medtasks.judge.request import JudgeAnswer, Messages, well_formed
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.transport import Late, Transport, Turn
from medtasks.judge.wire import Response

__all__ = ["Endpoint", "Reply", "Setback"]

LONGEST_WAIT = 300.0  # seconds; an endpoint that asks for more is not waited for
LONGEST_REASON = 300  # characters
MOST_TOKENS = 2**53  # a count beyond is none, and no database holds it
SHORTEST_SECRET = 8  # characters; shorter keys are placeholders such as "none", found in ordinary words


@dataclass(frozen=True)
class Reply:
    """An answer, and whether the endpoint said how many tokens it took."""

    answer: JudgeAnswer
    metered: bool


@dataclass(frozen=True)
class Setback:
    """Why an attempt brought no answer, whether another can, and how many seconds the endpoint asks to wait."""

    reason: str
    again: bool
    status: int | None = None
    wait: float | None = None


class Endpoint:
    """A chat API, as an asynchronous context manager on one event loop. Nothing that leaves it holds the API key."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._key = settings.api_key()
        self._address = settings.base_url.rstrip("/") + "/chat/completions"
        self._transport: Transport | None = None

    async def __aenter__(self) -> Endpoint:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._transport is not None:
            await self._transport.close()

    async def attempt(self, messages: Messages, schema: dict[str, Any] | None, turn: Turn) -> Reply | Setback:
        """Ask once, in ``turn``, with ``schema`` as ``response_format`` unless it is None.

        Raises:
            NotSent: as ``turn.begin``.
            UsageError: there can be no client for the address.
        """
        import openai

        if self._transport is None:  # where all is stored, none is needed: openai takes a second to import
            try:
                self._transport = Transport(self._settings.base_url, self._address, self._key or "none")
            except Exception as error:  # of openai or below: certificates that are not there, and the like
                where, why = self._settings.base_url, self._redacted(str(error))
                raise UsageError(f"{where}: no client can be made for this address ({why}).") from None
        try:
            came = await self._transport.post(self._body(messages, schema), turn)
        except Late:
            return Setback(f"timeout: no answer within {turn.timeout:g} s", again=True)
        except openai.APIConnectionError as error:  # "timed out" too: so openai calls some refused connections
            return self._setback("connection", error.__cause__ or error, again=True)
        except OSError as error:
            return self._setback("connection", error, again=True)
        except openai.OpenAIError as error:
            return self._setback("client", error, again=False)
        text = came.content.decode("utf-8", "replace")
        if not 200 <= came.status < 300:
            return self._refusal(came, text)
        reply = _read(self._redacted(text))
        if isinstance(reply, str):
            return self._setback("bad reply", reply, again=True)
        if self._key is None:
            return reply
        answer = reply.answer  # redacted once more: JSON may have escaped the key
        return replace(reply, answer=replace(answer, text=self._redacted(answer.text)))

    def _body(self, messages: Messages, schema: dict[str, Any] | None) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {"model": settings.model, "messages": [_sendable(part) for part in messages]}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            body["max_tokens"] = settings.max_tokens
        if schema is not None:
            named = {"name": "verdict", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body | settings.extra_body

    def _refusal(self, came: Response, text: str) -> Setback:
        status, detail = came.status, _problem(text)
        again = status in (408, 409, 429) or status >= 500
        wait = _retry_after({name.decode("latin-1"): value.decode("latin-1") for name, value in came.headers})
        if again and wait is not None and wait > LONGEST_WAIT:
            again, detail = False, f"asks to wait {wait:.0f} s, more than {LONGEST_WAIT:.0f}: {detail}"
        return replace(self._setback(f"http {status}", detail, again=again), status=status, wait=wait)

    def _setback(self, kind: str, detail: object, *, again: bool) -> Setback:
        said = " ".join(self._redacted(well_formed(str(detail))).split()) or type(detail).__name__
        return Setback(f"{kind}: {said}"[:LONGEST_REASON], again)

    def _redacted(self, text: str) -> str:
        key = self._key
        return text.replace(key, "[API key]") if key and len(key) >= SHORTEST_SECRET else text


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {name: _sendable(part) for name, part in value.items()}
    return [_sendable(part) for part in value] if isinstance(value, list | tuple) else value


def _read(text: str) -> Reply | str:
    """The answer in the body of a 200, or what is wrong with the body."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"expected JSON ({type(error).__name__}), found {text[:80]!r}"
    choice = _first(document.get("choices")) if isinstance(document, dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        return f"expected choices[0].message, found {json.dumps(document, ensure_ascii=False)}"
    refusal, content = message.get("refusal"), message.get("content")
    if isinstance(content, list):  # content parts, as some gateways answer
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(text for text in texts if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        return f"expected a string as choices[0].message.content, found {type(content).__name__}"
    filtered = choice.get("finish_reason") == "content_filter"
    said, refused = content or "", filtered
    if isinstance(refusal, str) and refusal.strip():
        said, refused = refusal, True
    tokens = _tokens(document.get("usage"))
    return Reply(JudgeAnswer(well_formed(said), *(tokens or (0, 0)), refused), metered=tokens is not None)


def _problem(text: str) -> str:
    """What the body of a refusal says."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(text)
        error = document.get("error", document) if isinstance(document, dict) else None
        said = error.get("message") if isinstance(error, dict) else error
        # not as it came: escapes might hide the key
        return said if isinstance(said, str) and said.strip() else json.dumps(document, ensure_ascii=False)
    return text.strip() or "the answer is empty"


def _first(choices: object) -> dict[str, Any]:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _tokens(usage: object) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens", 0)
    if type(prompt) is not int or type(completion) is not int:
        return None
    return (prompt, completion) if 0 <= min(prompt, completion) <= max(prompt, completion) < MOST_TOKENS else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or a date)."""
    milliseconds, after = _seconds(headers.get("retry-after-ms")), headers.get("retry-after")
    if milliseconds is not None:
        return milliseconds / 1000
    if after is None or (seconds := _seconds(after)) is not None:
        return None if after is None else seconds
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None

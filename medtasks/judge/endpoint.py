"""A judge's endpoint: one attempt at one request, over HTTP or in a batch."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import certifi

from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.files import canonical_json, replaced, short_hash
from medtasks.core.text import well_formed
from medtasks.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import AsyncOpenAI
    from openai.types import Batch


LONGEST_WAIT = 300.0  # seconds; longer waits fail the request
LONGEST_REASON = 300  # characters
SHORTEST_SECRET = 8  # characters; shorter keys are placeholders such as "none", which ordinary words contain
REDIRECTS = frozenset({301, 302, 303, 307, 308})
IDLE = 4.0  # seconds that an unused connection is kept; servers close theirs after five or more


Messages: TypeAlias = "tuple[dict[str, Any], ...]"  # messages of OpenAI's chat API


@dataclass(frozen=True)
class JudgeAnswer:
    """A judge's answer or refusal, not yet parsed as a verdict; ``metered`` is false if no tokens were reported."""

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
    """A chat API, used from one event loop. Nothing it returns contains the API key."""

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
        """What requests are waiting for."""
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
            tls = ssl.create_default_context()
            tls.load_verify_locations(certifi.where())  # too, as some Python installations find no others
            # the rate limiter decides how many requests are in flight; the time limit covers an attempt as a whole
            self._session = aiohttp.ClientSession(
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=tls),
            )
        data = self._body(messages, schema).encode()
        try:
            # a redirect would send the prompts to an address that the user did not name
            request = self._session.post(self._address, data=data, proxy=self._proxy, allow_redirects=False)
            async with request as response:
                body = await response.read()
        except asyncio.TimeoutError:
            return FailedAttempt(f"timeout: no answer within {self._settings.timeout:g} s", again=True)
        except (aiohttp.ClientError, OSError) as error:
            return self._failed_attempt("connection", error, again=True)
        return self._outcome(response.status, response.headers, body.decode("utf-8", "replace"))

    def _body(self, messages: Messages, schema: dict[str, Any] | None) -> str:
        settings = self._settings
        given = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
        body: dict[str, Any] = {"model": settings.model, "messages": messages}
        body |= {name: value for name, value in given.items() if value is not None}
        if schema is not None:
            named = {"name": "verdict", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return well_formed(json.dumps(body | settings.extra_body, ensure_ascii=False, allow_nan=False))

    def _outcome(self, status: int, headers: Mapping[str, str], text: str) -> JudgeAnswer | FailedAttempt:
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
        asked = headers.get("Retry-After", "")
        wait = float(asked) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", asked) else None
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
    if not all(type(count) is int and 0 <= count < 2**53 for count in (prompt, completion)):
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


QUIET = 2.0  # seconds without a further request after which a batch is sent
LARGEST = 100 * 2**20  # bytes of a batch; OpenAI allows 200 MB and 50,000 requests
POLLS = (1.0, 60.0)  # seconds between two looks at a batch, first and longest
UNREACHED = 100  # looks in a row without a reply before the wait ends: an hour and a half
FINAL = frozenset({"completed", "failed", "expired", "cancelled"})

Attempt = JudgeAnswer | FailedAttempt


class BatchEndpoint(Endpoint):
    """The Batch API at the judge's address, used from one event loop."""

    def __init__(self, settings: JudgeSettings) -> None:
        super().__init__(settings)
        self._records = cache_root() / "batches" / short_hash(settings.base_url)
        self._resumed = False
        self._futures: dict[str, asyncio.Future[Attempt]] = {}  # by the hash of the request
        self._names: list[str] = []  # of the requests that wait to be sent
        self._lines = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._progress: dict[str, str] = {}
        self._ended: list[Path] = []

    @property
    def state(self) -> str:
        return ", ".join(f"batch {name}: {what}" for name, what in sorted(self._progress.items()))

    async def close(self) -> None:
        """Stop waiting. Batches under way continue at the endpoint; those that have ended are forgotten."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._resumed:
            await self._client.close()
        for record in self._ended:  # only now: their answers are stored
            record.unlink(missing_ok=True)

    async def attempt(self, messages: Messages, schema: dict[str, Any] | None) -> Attempt:
        """The request's result in its batch, which may take a day."""
        if not self._resumed:
            self._resumed = True
            for record in sorted(self._records.glob("*.json")):  # batches of an earlier process
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self._start(json.loads(record.read_text(encoding="utf-8")))
        body = self._body(messages, schema)
        name = short_hash(body)
        result = self._futures.get(name)
        if result is None or (result.done() and isinstance(result.result(), FailedAttempt)):  # not asked, or to retry
            loop = asyncio.get_running_loop()
            result = self._futures[name] = loop.create_future()
            line = f'{{"custom_id":"{name}","method":"POST","url":"/v1/chat/completions","body":{body}}}\n'.encode()
            if len(self._lines) + len(line) > LARGEST:
                self._send()
            self._names.append(name)
            self._lines += line
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_later(QUIET, self._send)
        return await asyncio.shield(result)

    @functools.cached_property
    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        return AsyncOpenAI(
            base_url=self._settings.base_url,
            api_key=self._key or "none",
            timeout=self._settings.timeout,
            max_retries=self._settings.retries,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),
        )

    def _send(self) -> None:
        names, self._names = self._names, []
        lines, self._lines = self._lines, bytearray()
        if names:
            self._start({"names": names}, lines)

    def _start(self, known: dict[str, Any], lines: bytearray | None = None) -> None:
        names: list[str] = known["names"]
        for name in names:
            self._futures.setdefault(name, asyncio.get_running_loop().create_future())

        async def run() -> None:
            try:
                results = await self._results(known, lines)
            except Exception as error:  # whatever the client raises: a connection, a status, an unreadable reply
                status = getattr(error, "status_code", None)
                kind = "connection" if status is None else f"http {status}"
                failed = self._failed_attempt(kind, error, again=False)  # openai has tried again
                results = dict.fromkeys(names, replace(failed, status=status))
            for name in names:
                if not self._futures[name].done():  # two batches of an earlier process may have it
                    self._futures[name].set_result(results[name])

        task = asyncio.ensure_future(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _results(self, known: dict[str, Any], lines: bytearray | None) -> Mapping[str, Attempt]:
        """The results of a new batch of ``lines``, or of one that an earlier process recorded: created now if that
        process was stopped before it was."""
        import openai

        if lines is not None:
            uploaded = await self._client.files.create(file=("medtasks.jsonl", bytes(lines)), purpose="batch")
            lines.clear()  # up to 100 MB, and the batch may take a day
            known["file"] = uploaded.id
        record = self._records / f"{short_hash(known['file'])}.json"
        try:
            if "batch" in known:
                batch = await self._client.batches.retrieve(known["batch"])
            else:
                _write(record, known)
                batches = [] if lines is not None else [one async for one in self._client.batches.list()]
                made = next((one for one in batches if one.input_file_id == known["file"]), None)
                batch = made or await self._client.batches.create(
                    input_file_id=known["file"], endpoint="/v1/chat/completions", completion_window="24h"
                )
                _write(record, {**known, "batch": batch.id})
        except (openai.NotFoundError, openai.BadRequestError):
            if lines is not None:
                raise
            record.unlink(missing_ok=True)
            return dict.fromkeys(known["names"], FailedAttempt("a batch of an earlier run is gone", again=True))
        found: dict[str, Attempt] = {}
        try:
            batch = await self._final(batch)
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                content = await self._client.files.content(file)
                for line in content.read().split(b"\n"):  # a damaged one has no result
                    with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
                        found |= self._result(json.loads(line))
        finally:
            self._progress.pop(batch.id, None)
        self._ended.append(record)
        if batch.status == "failed":  # refused as a whole
            problems = [one.message for one in (batch.errors.data if batch.errors else None) or () if one.message]
            why = self._failed_attempt("batch refused", "; ".join(problems) or "without a reason", again=False)
        else:
            again = batch.status != "cancelled"
            why = FailedAttempt(f"batch {batch.status}: it has no result for this request", again)
        return {name: found.get(name, why) for name in known["names"]}

    async def _final(self, batch: Batch) -> Batch:
        """The batch once it has ended; the network may be away in the meantime."""
        import openai

        pause, longest = POLLS
        unreached = 0
        while batch.status not in FINAL:
            counts = batch.request_counts
            done = f", {counts.completed:,} of {counts.total:,} done" if counts is not None else ""
            self._progress[batch.id] = f"{'not reached' if unreached else batch.status}{done}"
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, longest)
            try:
                batch, unreached = await self._client.batches.retrieve(batch.id), 0
            except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError):
                unreached += 1
                if unreached == UNREACHED:
                    raise
        return batch

    def _result(self, line: dict[str, Any]) -> dict[str, Attempt]:
        """The result in a line of a file, by its request."""
        name, response, error = str(line["custom_id"]), line.get("response"), line.get("error") or {}
        if response is not None:
            return {name: self._outcome(int(response["status_code"]), {}, canonical_json(response["body"]))}
        code = str(error.get("code"))
        again = code in ("batch_expired", "server_error")
        return {name: self._failed_attempt("batch", error.get("message") or code, again=again)}


def _write(record: Path, known: Mapping[str, Any]) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    with replaced(record) as partial:
        partial.write_text(canonical_json(known), encoding="utf-8")

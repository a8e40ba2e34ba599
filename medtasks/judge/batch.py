"""A judge behind OpenAI's Batch API: answers within a day, at half the price of the chat API at the time of writing.

Requests are collected into batches, and each attempt waits for its result. A batch is recorded before it is created,
so a command that is repeated waits for the batches of the earlier one instead of paying again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import tempfile
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.core.cache import cache_root
from medtasks.core.files import canonical_json, replaced, short_hash
from medtasks.judge.endpoint import LARGEST_BODY, Endpoint, FailedAttempt, JudgeAnswer, Messages
from medtasks.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

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
        self._lines: dict[str, bytes] = {}
        self._size = 0  # bytes of these lines
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
                    known = json.loads(record.read_text(encoding="utf-8"))
                    self._start([str(name) for name in known["names"]], self._old_batch(record, known))
        body = self._body(messages, schema)
        name = short_hash(body)
        result = self._futures.get(name)
        if result is None or (result.done() and isinstance(result.result(), FailedAttempt)):  # not asked, or to retry
            loop = asyncio.get_running_loop()
            result = self._futures[name] = loop.create_future()
            line = f'{{"custom_id":"{name}","method":"POST","url":"/v1/chat/completions","body":{body}}}\n'.encode()
            if self._size + len(line) > LARGEST:
                self._send()
            self._lines[name] = line
            self._size += len(line)
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
            default_headers={"Accept-Encoding": "identity"},  # a compressed result could have any size
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),
        )

    def _send(self) -> None:
        """Send what was collected, since the batch is full or no further request came."""
        lines, self._lines, self._size = self._lines, {}, 0
        if lines:
            self._start(list(lines), self._new_batch(lines))

    def _start(self, names: list[str], work: Awaitable[Mapping[str, Attempt]]) -> None:
        for name in names:
            self._futures.setdefault(name, asyncio.get_running_loop().create_future())

        async def run() -> None:
            try:
                results = await work
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

    async def _new_batch(self, lines: dict[str, bytes]) -> Mapping[str, Attempt]:
        names = list(lines)
        content = b"".join(lines.values())
        uploaded = await self._client.files.create(file=("medtasks.jsonl", content), purpose="batch")
        del content  # up to 100 MB, and the batch may take a day
        lines.clear()
        record = self._records / f"{short_hash(uploaded.id)}.json"
        known = {"names": names, "file": uploaded.id}
        record.parent.mkdir(parents=True, exist_ok=True)
        _write(record, known)
        return await self._results(record, names, await self._create(record, known))

    async def _create(self, record: Path, known: Mapping[str, Any]) -> Batch:
        batch = await self._client.batches.create(
            input_file_id=known["file"], endpoint="/v1/chat/completions", completion_window="24h"
        )
        _write(record, {**known, "batch": batch.id})
        return batch

    async def _old_batch(self, record: Path, known: Mapping[str, Any]) -> Mapping[str, Attempt]:
        """The results of a recorded batch. It is created now if the earlier process was stopped before that."""
        import openai

        try:
            if "batch" in known:
                batch = await self._client.batches.retrieve(known["batch"])
            else:
                found = [one async for one in self._client.batches.list() if one.input_file_id == known["file"]]
                batch = found[0] if found else await self._create(record, known)
        except (openai.NotFoundError, openai.BadRequestError):
            record.unlink(missing_ok=True)
            return dict.fromkeys(known["names"], FailedAttempt("a batch of an earlier run is gone", again=True))
        return await self._results(record, known["names"], batch)

    async def _results(self, record: Path, names: Iterable[str], batch: Batch) -> Mapping[str, Attempt]:
        """Wait until the batch has ended, and read what it has of every request."""
        found: dict[str, Attempt] = {}
        try:
            batch = await self._final(batch)
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                found |= await self._read_file(file)
        finally:
            self._progress.pop(batch.id, None)
        self._ended.append(record)
        if batch.status == "failed":  # refused as a whole
            problems = [one.message for one in (batch.errors.data if batch.errors else None) or () if one.message]
            why = self._failed_attempt("batch refused", "; ".join(problems) or "without a reason", again=False)
        else:
            again = batch.status != "cancelled"
            why = FailedAttempt(f"batch {batch.status}: it has no result for this request", again)
        return {name: found.get(name, why) for name in names}

    async def _final(self, batch: Batch) -> Batch:
        """The batch once it has ended. A network or a server may be away in the meantime."""
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
                batch = await self._client.batches.retrieve(batch.id)
                unreached = 0
            except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError):
                unreached += 1
                if unreached == UNREACHED:
                    raise
        return batch

    async def _read_file(self, file: str) -> dict[str, Attempt]:
        """The results in a file, one a line. A line that is damaged or too large has none, nor has its request."""
        results: dict[str, Attempt] = {}
        with tempfile.TemporaryFile() as stream:
            async with self._client.files.with_streaming_response.content(file) as response:
                async for chunk in response.iter_bytes():
                    stream.write(chunk)
            stream.seek(0)
            for text in (one for one in stream if len(one) <= LARGEST_BODY):
                with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
                    line = json.loads(text)
                    name, response, error = str(line["custom_id"]), line.get("response"), line.get("error") or {}
                    if response is not None:
                        body = canonical_json(response["body"])
                        results[name] = self._outcome(int(response["status_code"]), {}, body)
                        continue
                    code = str(error.get("code"))
                    again = code in ("batch_expired", "server_error")
                    results[name] = self._failed_attempt("batch", error.get("message") or code, again=again)
        return results


def _write(record: Path, known: Mapping[str, Any]) -> None:
    with replaced(record) as partial:
        partial.write_text(canonical_json(known), encoding="utf-8")

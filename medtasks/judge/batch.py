"""A judge's Batch API: requests collected, uploaded, and waited for, across processes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, retry_if_not_exception_type, stop_after_attempt, wait_fixed

from medtasks.core.cache import cache_root
from medtasks.core.files import canonical_json, short_hash
from medtasks.judge.batch_record import BatchRecord
from medtasks.judge.endpoint import Attempt, Endpoint, Messages
from medtasks.judge.reply import LARGEST_REPLY, FailedAttempt, ReplyTooLarge
from medtasks.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

QUIET = 2.0  # seconds without a further request after which a batch is sent
LARGEST = 100 * 2**20  # bytes of a batch; OpenAI allows 200 MB and 50,000 requests
POLLS = (1.0, 60.0)  # seconds between two looks at a batch, first and longest
UNREACHED = 100  # looks in a row without a reply before the wait ends: an hour and a half
FINAL = frozenset({"completed", "failed", "expired", "cancelled"})
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a damaged record, or a damaged line of results, raises."""


class BatchEndpoint(Endpoint):
    """The Batch API at the judge's address, used from one event loop."""

    def __init__(self, settings: JudgeSettings) -> None:
        super().__init__(settings)
        self._records = cache_root() / "batches" / short_hash(settings.base_url)
        self._resumed = False
        # by name: the hash of the request
        self._futures: dict[str, asyncio.Future[Attempt]] = {}
        self._names: list[str] = []  # of the requests that wait to be sent
        self._lines = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._progress: dict[str, str] = {}
        self._ended: list[Path] = []

    @property
    def state(self) -> str:
        """What the batches under way are waiting for."""
        batches = sorted(self._progress.items())
        return ", ".join(f"batch {name}: {progress}" for name, progress in batches)

    async def close(self) -> None:
        """Stop waiting: batches under way continue at the endpoint, ended ones are forgotten."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._resumed:
            await self._api.close()
        for record in self._ended:  # only now: their answers are stored
            record.unlink(missing_ok=True)

    async def attempt(self, messages: Messages, schema: dict[str, Any] | None) -> Attempt:
        """The request's result in its batch, which may take a day."""
        if not self._resumed:
            self._resumed = True
            self._resume()
        body = self._body(messages, schema)
        name = short_hash(body)
        if self._must_ask(name):
            self._futures[name] = asyncio.get_running_loop().create_future()
            self._collect(name, body)
        return await asyncio.shield(self._futures[name])

    def _resume(self) -> None:
        """Wait for the batches of an earlier process."""
        for path in sorted(self._records.glob("*.json")):
            with contextlib.suppress(OSError, *_DAMAGED):
                record = BatchRecord.read(path)
                self._start(record.names, functools.partial(self._recorded_results, record))

    def _must_ask(self, name: str) -> bool:
        """Whether a request was not asked, or failed and is repeated."""
        future = self._futures.get(name)
        if future is None:
            return True
        return future.done() and isinstance(future.result(), FailedAttempt)

    def _collect(self, name: str, body: str) -> None:
        """Add a request to the next batch, which is sent once no further one comes."""
        line = (
            f'{{"custom_id":"{name}","method":"POST","url":"/v1/chat/completions","body":{body}}}\n'
        ).encode()
        if len(self._lines) + len(line) > LARGEST:
            self._send()
        self._names.append(name)
        self._lines += line
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(QUIET, self._send)

    @functools.cached_property
    def _api(self) -> AsyncOpenAI:
        from medtasks.judge.openai_client import batch_client

        return batch_client(self._settings, self._key)

    def _send(self) -> None:
        """Send the collected requests as a batch."""
        names, self._names = self._names, []
        lines, self._lines = self._lines, bytearray()
        if names:
            self._start(names, functools.partial(self._new_results, names, lines))

    def _start(
        self, names: Sequence[str], results: Callable[[], Awaitable[Mapping[str, Attempt]]]
    ) -> None:
        """Wait for the results of a batch in a task of its own."""
        for name in names:
            self._futures.setdefault(name, asyncio.get_running_loop().create_future())
        task = asyncio.ensure_future(self._finish(names, results))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _finish(
        self, names: Sequence[str], results: Callable[[], Awaitable[Mapping[str, Attempt]]]
    ) -> None:
        """Set the results of the requests with these names."""
        try:
            attempts = await results()
        except Exception as error:  # of the client: a connection, a status, an unreadable reply
            status = getattr(error, "status_code", None)
            kind = "connection"
            if isinstance(error, ReplyTooLarge):
                kind = "bad reply"
            elif status is not None:
                kind = f"http {status}"
            failed = self._failed_attempt(kind, error, again=False)  # openai has tried again
            attempts = dict.fromkeys(names, replace(failed, status=status))
        for name in names:
            if not self._futures[name].done():  # two batches of an earlier process may have it
                self._futures[name].set_result(attempts[name])

    async def _new_results(self, names: list[str], lines: bytearray) -> Mapping[str, Attempt]:
        """The results of a new batch of ``lines``."""
        uploaded = await self._api.files.create(
            file=("medtasks.jsonl", bytes(lines)), purpose="batch"
        )
        lines.clear()  # up to 100 MB, and the batch may take a day
        record = BatchRecord(names, uploaded.id)
        record.write(self._path_of(record))
        batch = await self._created(record)
        return await self._results(record, batch)

    async def _recorded_results(self, record: BatchRecord) -> Mapping[str, Attempt]:
        """The results of a batch that an earlier process recorded.

        It is created if that process was stopped before.
        """
        import openai

        try:
            batch = await self._recorded_batch(record)
        except (openai.NotFoundError, openai.BadRequestError):
            self._path_of(record).unlink(missing_ok=True)
            gone = FailedAttempt("a batch of an earlier run is gone", again=True)
            return dict.fromkeys(record.names, gone)
        return await self._results(record, batch)

    async def _recorded_batch(self, record: BatchRecord) -> Batch:
        """The batch of a record, or else of its file; a new one if neither exists yet."""
        if record.batch is not None:
            return await self._api.batches.retrieve(record.batch)
        async for batch in self._api.batches.list():
            if batch.input_file_id == record.file:
                replace(record, batch=batch.id).write(self._path_of(record))
                return batch
        return await self._created(record)

    async def _created(self, record: BatchRecord) -> Batch:
        """A batch of the record's file, which is noted in the record."""
        batch = await self._api.batches.create(
            input_file_id=record.file,
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )
        replace(record, batch=batch.id).write(self._path_of(record))
        return batch

    def _path_of(self, record: BatchRecord) -> Path:
        return self._records / f"{short_hash(record.file)}.json"

    async def _results(self, record: BatchRecord, batch: Batch) -> Mapping[str, Attempt]:
        """The results of a batch once it has ended; its record is removed later."""
        attempts: dict[str, Attempt] = {}
        try:
            batch = await self._final(batch)
            for file in (batch.output_file_id, batch.error_file_id):
                if file:
                    attempts |= await self._results_in(file)
        finally:
            self._progress.pop(batch.id, None)
        self._ended.append(self._path_of(record))
        without_result = self._attempt_without_result(batch)
        return {name: attempts.get(name, without_result) for name in record.names}

    def _attempt_without_result(self, batch: Batch) -> FailedAttempt:
        """The attempt of a request that has no result in a batch that has ended."""
        if batch.status != "failed":
            again = batch.status != "cancelled"
            return FailedAttempt(f"batch {batch.status}: it has no result for this request", again)
        messages = []
        if batch.errors and batch.errors.data:
            messages = [error.message for error in batch.errors.data if error.message]
        reason = "; ".join(messages) or "without a reason"  # it was refused as a whole
        return self._failed_attempt("batch refused", reason, again=False)

    async def _final(self, batch: Batch) -> Batch:
        """The batch once it has ended; the network may be away in the meantime."""
        import openai

        pause, longest = POLLS
        unreached = 0
        while batch.status not in FINAL:
            state = "not reached" if unreached else batch.status
            self._progress[batch.id] = f"{state}{_done_in(batch)}"
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, longest)
            try:
                batch = await self._api.batches.retrieve(batch.id)
                unreached = 0
            except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError):
                unreached += 1
                if unreached == UNREACHED:
                    raise
        return batch

    async def _results_in(self, file: str) -> dict[str, Attempt]:
        """The results in a file at the endpoint; a damaged or too long line has none."""
        import openai

        results: dict[str, Attempt] = {}
        retrying = AsyncRetrying(
            # what else fails is a connection that broke while the file was read
            retry=retry_if_not_exception_type(openai.APIStatusError),
            stop=stop_after_attempt(self._settings.retries + 1),
            wait=wait_fixed(self._settings.backoff),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                async for line in self._lines_of(file):
                    with contextlib.suppress(*_DAMAGED):
                        results |= self._result(json.loads(line))
        return results

    async def _lines_of(self, file: str) -> AsyncIterator[bytes]:
        """The lines of a file at the endpoint, as they arrive, of at most `LARGEST_REPLY` bytes."""
        line = bytearray()
        async with self._api.files.with_streaming_response.content(file) as response:
            async for block in response.iter_bytes():
                first, *further = block.split(b"\n")
                line += first
                for piece in further:
                    if len(line) <= LARGEST_REPLY:
                        yield bytes(line)
                    line = bytearray(piece)
                del line[LARGEST_REPLY + 1 :]  # enough to know that it is too long
        if len(line) <= LARGEST_REPLY:
            yield bytes(line)

    def _result(self, line: dict[str, Any]) -> dict[str, Attempt]:
        """The result in a line of a file, by the name of its request."""
        name = str(line["custom_id"])
        response = line.get("response")
        if response is not None:
            body = canonical_json(response["body"])
            return {name: self._outcome(int(response["status_code"]), {}, body)}
        error = line.get("error") or {}
        code = str(error.get("code"))
        again = code in ("batch_expired", "server_error")
        return {name: self._failed_attempt("batch", error.get("message") or code, again=again)}


def _done_in(batch: Batch) -> str:
    """How many requests of a batch are done, as the end of a sentence; empty if unknown."""
    counts = batch.request_counts
    if counts is None:
        return ""
    return f", {counts.completed:,} of {counts.total:,} done"

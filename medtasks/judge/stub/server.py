"""The stub judge's server: connections, order of service, and which fault meets which request."""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from medtasks.errors import UsageError
from medtasks.judge.stub.chat import chat_body, completion, error_document, models
from medtasks.judge.stub.faults import Faults, spoilt
from medtasks.judge.stub.filling import UnfillableError
from medtasks.judge.stub.ledger import Ledger, Received, Repeats
from medtasks.judge.stub.rule import rule_based
from medtasks.judge.stub.wire import Connection, HttpError, Reply, Request

__all__ = ["StubJudge"]

_NO_FAULTS = Faults()
_METHODS = {"/v1/models": "GET", "/v1/chat/completions": "POST"}


class StubJudge:
    """The server, as a context manager; it runs in a thread with an event loop of its own.

    Args:
        decide: request body -> content of the answer; default :func:`rule_based`. Runs on the server's loop, so keep
            it quick. If it raises, the client gets a 500 and leaving the context raises the first such error.
        latency: seconds from being served to the answer.
        faults, seed: see :class:`Faults`.
        capacity: requests served at once, the others wait in order of arrival; so throughput is capacity / latency.
            A 429 takes no place and no time. ``None``: no limit.
        structured: ``False`` answers 400 to a ``response_format``, as some servers do.
        port: on 127.0.0.1; 0 takes a free one. Entering raises ``OSError`` where it cannot be had.
        keep_requests: ``False`` leaves ``requests`` empty, for a server that runs for long.

    ``counts`` has, per outcome, the chat requests finished: "ok", the fault kinds, "undelivered" (the client hung up
    before its answer), "decide_failed", "response_format_refused"; and "models" and "bad_request".
    """

    def __init__(
        self,
        decide: Callable[[Mapping[str, Any]], str] | None = None,
        *,
        latency: float = 0.0,
        faults: Faults = _NO_FAULTS,
        seed: int = 0,
        capacity: int | None = None,
        structured: bool = True,
        port: int = 0,
        keep_requests: bool = True,
    ) -> None:
        if not 0 <= latency < math.inf or (capacity is not None and capacity < 1):
            raise UsageError(f"StubJudge: latency={latency}, capacity={capacity}; expected >= 0 and >= 1 (or None)")
        if not 0 <= port < 2**16:
            raise UsageError(f"StubJudge: port={port}, expected 0 to 65535; 0 takes a free one")
        self._decide = decide or rule_based
        self._latency, self._faults, self._seed = latency, faults, seed
        self._capacity, self._structured = capacity, structured
        self._wanted_port, self._keep_requests = port, keep_requests
        self._ledger = Ledger()
        self._failure: Exception | None = None
        self._port: int | None = None

    @property
    def url(self) -> str:
        """The API's base, as OpenAI clients take it."""
        if self._port is None:
            raise UsageError("StubJudge: it has no address before it is entered; use `with StubJudge() as stub`")
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> list[Received]:
        """The chat requests in order of arrival."""
        return list(self._ledger.requests)

    @property
    def counts(self) -> Counter[str]:
        return Counter(self._ledger.counts.copy())

    @property
    def peak(self) -> int:
        """The most requests that were served at once."""
        return self._ledger.peak

    @property
    def connections(self) -> int:
        """How many connections were opened."""
        return self._ledger.connections

    def reset(self) -> None:
        """Forget requests, counts and attempt numbers: the next run meets the faults that a new stub would give."""
        self._ledger = Ledger()

    def __enter__(self) -> StubJudge:
        self._started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="medtasks-stub-judge", daemon=True)
        self._thread.start()
        self._port = self._started.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._port = None
        failure, self._failure = self._failure, None
        if failure is not None and kind is None:
            raise failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:  # the port is taken: raised where the caller waits
            self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._open: set[Connection] = set()
        self._queue: deque[Callable[[], None]] = deque()
        self._serving = 0

        def connection() -> Connection:
            return Connection(self._take, self._refused, self._opened, self._open.discard)

        server = await self._loop.create_server(connection, "127.0.0.1", self._wanted_port, backlog=1024)
        self._started.set_result(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        server.close()
        for one in list(self._open):
            one.hang_up()
        await asyncio.sleep(0)  # the connections close

    def _opened(self, connection: Connection) -> None:
        self._open.add(connection)
        self._ledger.connections += 1

    def _refused(self, error: HttpError) -> Reply:
        self._ledger.counts[error.outcome] += 1
        return Reply(error.status, error_document(str(error), "invalid_request_error", error.param))

    def _take(self, request: Request, connection: Connection) -> None:
        """Answer a request, now or later."""
        expected = _METHODS.get(request.path)
        if expected is None:
            raise HttpError(404, "unknown path; the stub serves /v1/models and /v1/chat/completions")
        if request.method != expected:
            raise HttpError(405, f"{request.path} takes {expected}")
        if expected == "GET":
            self._ledger.counts["models"] += 1
            connection.answer(Reply(200, models()))
        else:
            self._chat(request, connection)

    def _chat(self, request: Request, connection: Connection) -> None:
        ledger = self._ledger
        arrived, digest = time.monotonic(), hashlib.sha256(request.body).hexdigest()
        body = chat_body(request.body)
        known = ledger.bodies[digest]
        known.attempts += 1
        received = Received(arrived, digest, known.attempts, request.body, request.with_key)
        if self._keep_requests:
            ledger.requests.append(received)
        if not self._structured and body.get("response_format") is not None:
            received.outcome = "response_format_refused"
            message = "this server does not support response_format"
            raise HttpError(400, message, outcome=received.outcome, param="response_format")
        fault, chance = self._fault(known, digest)
        if fault == "too_many":
            ledger.finish(received, fault)
            limited = error_document("too many requests", "rate_limit_error", None)
            connection.answer(Reply(429, limited, (f"Retry-After: {self._faults.retry_after:g}",)))
            return

        def begin() -> None:
            self._serving += 1
            ledger.peak = max(ledger.peak, self._serving)
            taken = 0.0 if connection.gone else self._latency * (10 if fault == "slow" else 1)
            self._loop.call_later(taken, end)

        def end() -> None:
            self._serving -= 1
            if self._queue:
                self._queue.popleft()()
            # OpenAI clients never close just their sending half, so the end of their stream means that nobody listens
            if connection.gone:
                ledger.finish(received, "undelivered")
                connection.hang_up()
            else:
                connection.answer(self._answer(received, body, fault, chance, ledger))

        if self._capacity is None or self._serving < self._capacity:
            begin()
        else:
            self._queue.append(begin)

    def _fault(self, known: Repeats, digest: str) -> tuple[str, random.Random]:
        fault, chance = self._faults.draw(self._seed, digest, known.attempts)
        if known.burst_left > 0:
            fault = "too_many"
            known.burst_left -= 1
        elif fault == "too_many":
            known.burst_left = self._faults.burst - 1
        elif fault == "duplicate" and known.last == "duplicate":
            fault = "ok"
        known.last = fault
        return fault, chance

    def _answer(
        self, received: Received, body: Mapping[str, Any], fault: str, chance: random.Random, ledger: Ledger
    ) -> Reply:
        if fault == "server_error":
            ledger.finish(received, fault)
            return Reply(500, error_document("the stub fails on purpose", "server_error", None))
        try:
            content = self._decide(body)
            if not isinstance(content, str):
                raise TypeError(f"StubJudge: decide returned {type(content).__name__}, expected str")
        except UnfillableError as error:
            ledger.finish(received, "bad_request")
            return Reply(400, error_document(str(error), "invalid_request_error", None))
        except Exception as error:  # decide is the caller's: the client must get an answer whatever it raises
            self._failure = self._failure or error
            ledger.finish(received, "decide_failed")
            return Reply(500, error_document("decide raised an error", "server_error", None))
        ledger.finish(received, fault)
        document = completion(received, body, *spoilt(content, fault, chance, bool(body.get("response_format"))))
        return Reply(200, document, (), "cut" if fault == "cut" else "overrun" if fault == "duplicate" else "whole")

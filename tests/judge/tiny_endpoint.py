"""A chat endpoint on loopback whose every reply the test writes itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


@dataclass
class Arrival:
    """One request as the server saw it."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float  # seconds of time.monotonic()
    nth: int  # how often this question came, from 1

    @property
    def question(self) -> str:
        return str(self.body["messages"][-1]["content"])


@dataclass
class Http:
    """What the server sends; ``cut`` closes the connection in the middle of the body."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


def said(text: str | None, *, prompt: int = 10, completion: int = 3, usage: bool = True, **message: Any) -> Http:
    """An ordinary chat completion."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    tokens = {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}} if usage else {}
    return Http(body=json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], **tokens}))


def problem(status: int, message: str = "no", **headers: str) -> Http:
    """An error as OpenAI's API words it."""
    return Http(
        status, json.dumps({"error": {"message": message}}), {k.replace("_", "-"): v for k, v in headers.items()}
    )


Respond = Callable[[Arrival], Awaitable[Http]]


class TinyEndpoint:
    """The server, on the running event loop. By default it repeats the question after ``latency`` seconds."""

    def __init__(self, respond: Respond | None = None, *, latency: float = 0.0) -> None:
        self._respond = respond or self._echo
        self._latency = latency
        self._tasks: set[asyncio.Task[Any]] = set()
        self.arrivals: list[Arrival] = []
        self.connections = 0
        self.in_flight = 0
        self.peak = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def asked(self, question: str) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival.question == question]

    async def __aenter__(self) -> TinyEndpoint:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _echo(self, arrival: Arrival) -> Http:
        await asyncio.sleep(self._latency)
        return said(arrival.question)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        arrival = Arrival(body, headers, time.monotonic(), 0)
        arrival.nth = len(self.asked(arrival.question)) + 1
        self.arrivals.append(arrival)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            reply = await self._respond(arrival)
        finally:
            self.in_flight -= 1
        content = reply.body.encode()
        head = [f"HTTP/1.1 {reply.status} Tiny", "Content-Type: application/json", f"Content-Length: {len(content)}"]
        head += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join([*head, "", ""]).encode() + (content[: len(content) // 2] if reply.cut else content))
        await writer.drain()
        return not reply.cut

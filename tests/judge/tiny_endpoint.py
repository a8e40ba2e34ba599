"""A chat endpoint on loopback whose every response the test writes itself, and a client that asks
it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from medtasks.judge.client import JudgeAnswer, JudgeClient, JudgeSettings, Spent, Unanswered


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
    """What the server sends; ``cut`` closes the connection in the middle of the body.

    ``announced`` is the Content-Length of a body that is only begun.
    """

    status: int = 200
    body: Any = ""  # text or bytes
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    announced: int | None = None


def said(
    text: str | None, *, prompt: int = 10, completion: int = 3, usage: bool = True, **message: Any
) -> Http:
    """An ordinary chat completion."""
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text, **message},
    }
    tokens = {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}} if usage else {}
    return Http(
        body=json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], **tokens})
    )


def problem(status: int, message: str = "no", **headers: str) -> Http:
    """An error as OpenAI's API words it."""
    return Http(
        status,
        json.dumps({"error": {"message": message}}),
        {k.replace("_", "-"): v for k, v in headers.items()},
    )


Respond = Http | Callable[[Arrival], Http | Awaitable[Http]]
"""What every request is answered with, or a function of the request."""


class TinyEndpoint:
    """The server, on the running event loop. By default it repeats the question after ``latency``
    seconds.
    """

    def __init__(
        self,
        respond: Respond | None = None,
        *,
        latency: float = 0.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._respond = respond or self._echo
        self._latency, self._tls = latency, tls
        self._connections: set[object] = set()
        self.arrivals: list[Arrival] = []
        self.in_flight = 0
        self.peak = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    @property
    def connections(self) -> int:
        return len(self._connections)

    def asked(self, question: str) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival.question == question]

    async def __aenter__(self) -> TinyEndpoint:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._exchange)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _echo(self, arrival: Arrival) -> Http:
        await asyncio.sleep(self._latency)
        return said(arrival.question)

    async def _exchange(self, request: web.Request) -> web.StreamResponse:
        self._connections.add(request.transport)
        headers = {name.lower(): value for name, value in request.headers.items()}
        arrival = Arrival(await request.json(), headers, time.monotonic(), 0)
        arrival.nth = len(self.asked(arrival.question)) + 1
        self.arrivals.append(arrival)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            reply = self._respond if isinstance(self._respond, Http) else self._respond(arrival)
            reply = reply if isinstance(reply, Http) else await reply
        finally:
            self.in_flight -= 1
        content = reply.body.encode() if isinstance(reply.body, str) else reply.body
        if not (reply.cut or reply.announced):
            return web.Response(
                status=reply.status,
                body=content,
                headers={"Content-Type": "application/json", **reply.headers},
            )
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        response.content_length = len(content) if reply.cut else reply.announced
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        if reply.announced:
            await asyncio.sleep(3600)  # until the client hangs up
        assert request.transport is not None
        request.transport.close()
        return response


KEY = "planted-key-1234567890"
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


JudgeRequest = tuple[str, tuple[dict[str, Any], ...], "dict[str, Any] | None"]
"""Arguments of `JudgeClient.answer`."""


def question(text: str, schema: dict[str, Any] | None = None) -> JudgeRequest:
    return f"key of {text}", ({"role": "user", "content": text},), schema


def questions(count: int) -> list[JudgeRequest]:
    return [question(f"q{number}") for number in range(count)]


@dataclass
class Asked:
    """What became of several requests, by the text of their last message, in the order of the
    outcomes.
    """

    client: JudgeClient
    outcomes: dict[str, JudgeAnswer | Unanswered] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)

    def text(self, name: str) -> str:
        answer = self.outcomes[name]
        assert isinstance(answer, JudgeAnswer), answer
        return answer.text

    def reason(self, name: str) -> str:
        failure = self.outcomes[name]
        assert isinstance(failure, Unanswered), failure
        return str(failure)


async def ask(client: JudgeClient, requests: Iterable[JudgeRequest]) -> Asked:
    """Ask all at once."""
    asked, before = Asked(client), replace(client.spent)

    async def one(request: JudgeRequest) -> None:
        name = request[1][-1]["content"]
        try:
            asked.outcomes[name] = await client.answer(*request)
        except Unanswered as failure:
            asked.outcomes[name] = failure

    async with client:
        await asyncio.gather(*map(one, requests))
    asked.spent = client.spent.since(before)
    return asked


def client_of(server: TinyEndpoint, **settings: Any) -> JudgeClient:
    return JudgeClient(
        JudgeSettings(base_url=server.url, model="judge", **{"backoff": 0.01, **settings})
    )


def run(server: TinyEndpoint, requests: Iterable[JudgeRequest], **settings: Any) -> Asked:
    """Ask, once, of a server that lives as long."""

    async def main() -> Asked:
        async with server:
            return await ask(client_of(server, **settings), requests)

    return asyncio.run(main())

"""HTTP over the thin transport: what arrives in which pieces, which connection is used again, and what is no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asking import SCHEMA, Asked, ask, client_of, question, questions
from tiny_endpoint import Arrival, Http, TinyEndpoint, problem, said

from medtasks.judge.client import Failure, JudgeClient, JudgeSettings
from medtasks.judge.request import BUDGET
from medtasks.judge.transport import wire_to
from medtasks.judge.wire import Response, Wire

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


class Script:
    """A server that sends the same bytes to every request of four bytes, in pieces, and may close after them."""

    def __init__(self, *pieces: bytes, close: bool = False) -> None:
        self._pieces, self._close = pieces, close
        self.connections = 0

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(4)
                for piece in self._pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.002)
                if self._close:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def run(self, work: Callable[[Wire], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
            wire = Wire("127.0.0.1", server.sockets[0].getsockname()[1])
            try:
                return await asyncio.wait_for(work(wire), 20)
            finally:
                wire.close()
                server.close()
                await asyncio.sleep(0.01)

        return asyncio.run(main())


async def once(wire: Wire) -> Response:
    return await wire.request(HEAD + b"\r\n\r\n", b"body")


async def twice(wire: Wire) -> list[bytes]:
    return [(await once(wire)).content, (await once(wire)).content]


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 5\r\n\r\nhello",),
        tuple(bytes([one]) for one in OK + b"Content-Length: 5\r\n\r\nhello"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhe", b"llo"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", b"3;x=y\r\nllo\r\n0\r\n\r\n"),
        tuple(bytes([one]) for one in OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n"),
    ],
)
def test_an_answer_in_pieces_is_whole_and_its_connection_serves_again(pieces: tuple[bytes, ...]) -> None:
    server = Script(*pieces)
    assert server.run(twice) == [b"hello", b"hello"]
    assert server.connections == 1


@pytest.mark.parametrize(
    "head", [OK + b"\r\n", OK + b"Content-Length: 5\r\nConnection: close\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"]
)
def test_a_connection_that_closes_is_not_used_again(head: bytes) -> None:
    server = Script(head + b"hello", close=True)
    assert server.run(twice) == [b"hello", b"hello"]
    assert server.connections == 2


def test_status_and_headers() -> None:
    found = Script(b"HTTP/1.1 429 Too Many\r\nRETRY-After:  7 \r\nContent-Length: 0\r\n\r\n").run(once)
    assert found == Response(429, [(b"retry-after", b"7"), (b"content-length", b"0")], b"")


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (OK + b"Content-Length: 9\r\n\r\nhello", "in the middle of its answer"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "in the middle of its answer"),
        (OK, "in the middle of its answer"),
        (b"", "before it answered"),
        (b"SMTP ready\r\n\r\n", "is no HTTP"),
        (OK + b"no colon\r\n\r\n", "is no HTTP"),
        (OK + b"Content-Length: -5\r\n\r\n", "is no HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "is no HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n", "is no HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", "is no HTTP"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\n", "transfer encoding"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "no HTTP"),
    ],
)
def test_what_is_no_whole_answer_is_a_broken_connection(sent: bytes, message: str) -> None:
    with pytest.raises(OSError, match=message):
        Script(sent, close=True).run(once)


def test_what_comes_unasked_ends_the_connection() -> None:
    server = Script(OK + b"Content-Length: 5\r\n\r\nhello" + OK)
    assert server.run(twice) == [b"hello", b"hello"]
    assert server.connections == 2


def test_a_request_that_is_given_up_leaves_nothing_for_the_next() -> None:
    async def respond(arrival: Arrival) -> Http:
        await asyncio.sleep(0.5 if arrival.question == "slow" else 0)
        return said(arrival.question)

    async def main() -> list[str]:
        async with TinyEndpoint(respond) as server:
            client = client_of(server, timeout=0.2, retries=0, concurrency=1)
            asked = await ask(client, [question("slow"), question("quick")])
            return [asked.reason("slow"), asked.text("quick")]

    assert asyncio.run(main()) == ["timeout: no answer within 0.2 s", "quick"]


def test_many_questions_share_as_many_connections_as_places() -> None:
    async def main() -> int:
        async with TinyEndpoint() as server:
            await ask(client_of(server, concurrency=4), questions(60))
            return server.connections

    assert asyncio.run(main()) == 4


def test_a_redirect_is_followed() -> None:
    async def main() -> list[str]:
        async with TinyEndpoint() as there:
            url = there.url + "/chat/completions"

            async def respond(_: Arrival) -> Http:
                return problem(307, Location=url)

            async with TinyEndpoint(respond) as here:
                asked = await ask(client_of(here, concurrency=2), questions(5))
                return [asked.text(f"q{number}") for number in range(5)]

    assert asyncio.run(main()) == [f"q{number}" for number in range(5)]


def test_a_redirect_spares_what_others_have_in_flight() -> None:
    async def respond(arrival: Arrival) -> Http:
        if arrival.question == "q5" and arrival.nth == 1:
            return problem(307, Location=url[0])
        await asyncio.sleep(0.1)
        return said(arrival.question)

    url: list[str] = []

    async def main() -> Asked:
        async with TinyEndpoint(respond) as server:
            url.append(server.url + "/chat/completions")
            return await ask(client_of(server, concurrency=6, retries=0), questions(20))

    asked = asyncio.run(main())
    assert asked.spent.answered == 20


def test_a_proxy_and_tls_get_the_ordinary_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def thin(base: str) -> bool:
        return wire_to(base + "/chat/completions") is not None

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert thin("http://127.0.0.1:9/v1")
    assert not thin("https://127.0.0.1:9/v1")
    assert not thin("http://name:word@127.0.0.1:9/v1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:8")
    assert not thin("http://127.0.0.1:9/v1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert thin("http://127.0.0.1:9/v1")


def test_an_answer_that_has_come_frees_its_connection_before_it_is_read() -> None:
    """What `arrived` lets in is sent on the same connection, before the waiting task goes on."""
    told: list[str] = []

    async def work(wire: Wire) -> None:
        second: list[asyncio.Task[Response]] = []

        def arrived(_: Response) -> None:
            told.append("arrived")
            second.append(asyncio.ensure_future(wire.request(HEAD + b"\r\n\r\n", b"body")))
            second[0].get_loop().call_soon(told.append, "the next is sent")

        await wire.request(HEAD + b"\r\n\r\n", b"body", arrived)
        told.append("read")
        await second[0]

    server = Script(OK + b"Content-Length: 5\r\n\r\nhello")
    server.run(work)
    assert told == ["arrived", "the next is sent", "read"]
    assert server.connections == 1


def test_giving_up_an_answer_that_has_come_leaves_its_connection_to_the_next() -> None:
    async def work(wire: Wire) -> list[bytes]:
        task = asyncio.ensure_future(wire.request(HEAD + b"\r\n\r\n", b"body", lambda _: task.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await task
        return await twice(wire)

    server = Script(OK + b"Content-Length: 5\r\n\r\nhello")
    assert server.run(work) == [b"hello", b"hello"]
    assert server.connections == 1


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[TinyEndpoint], JudgeClient]:
    """Makes clients that reach a server as the proxy of a host that does not exist."""

    def client(server: TinyEndpoint, **settings: Any) -> JudgeClient:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        return JudgeClient(
            JudgeSettings(base_url="http://judge.invalid/v1", model="judge", backoff=0.01, timeout=2.0, **settings)
        )

    for name in ("HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return client


def test_openais_own_client_is_asked_as_the_wire_is(proxied: Callable[..., JudgeClient]) -> None:
    async def respond(arrival: Arrival) -> Http:
        name, first = arrival.question, arrival.nth == 1
        await asyncio.sleep(0.02)
        if "response_format" in arrival.body:
            return problem(400, "response_format")
        if name == "busy" and first:
            return problem(429, Retry_After="0.05")
        if name == "wrong":
            return problem(422, "no such model")
        if name == "late":
            await asyncio.sleep(30)
        return said(name)

    async def main() -> tuple[Asked, int]:
        async with TinyEndpoint(respond) as server:
            names = ["busy", "wrong", "late", *(f"q{number}" for number in range(30))]
            client = proxied(server, concurrency=4, retries=1)
            asked = await ask(client, [question(name, SCHEMA) for name in names])
            assert all(one.headers["host"] == "judge.invalid" for one in server.arrivals)
            return asked, server.peak

    asked, peak = asyncio.run(main())
    assert peak == 4
    assert [asked.text(name) for name in ("busy", "q0", "q29")] == ["busy", "q0", "q29"]
    assert asked.reason("wrong") == "http 422: no such model"
    assert asked.reason("late") == "timeout: no answer within 2 s (2 attempts)"
    assert asked.spent.answered == 31
    assert asked.spent.failed == 2


def test_a_budget_holds_over_openais_own_client(proxied: Callable[..., JudgeClient]) -> None:
    async def main() -> tuple[Asked, int]:
        async with TinyEndpoint() as server:
            client = proxied(server, concurrency=4, budget={"max_requests": 7})
            return await ask(client, questions(20)), len(server.arrivals)

    asked, arrivals = asyncio.run(main())
    assert arrivals == asked.spent.requests == 7
    assert sorted({asked.reason(f"q{n}") for n in range(20) if isinstance(asked.outcomes[f"q{n}"], Failure)}) == [
        BUDGET
    ]

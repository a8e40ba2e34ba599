"""The client against a real HTTP server on loopback: answers, budgets, faults, connections, and the
key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shutil
import ssl
import subprocess
import traceback
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from tiny_endpoint import (
    KEY,
    SCHEMA,
    Arrival,
    Asked,
    Http,
    TinyEndpoint,
    ask,
    client_of,
    problem,
    question,
    questions,
    run,
    said,
)

from medtasks.core.errors import UsageError
from medtasks.judge.client import JudgeAnswer, JudgeClient, JudgeSettings, Spent
from medtasks.judge.rate_limiter import RateLimiter
from medtasks.judge.reply import Ending
from medtasks.judge.retry_after import seconds_to_wait
from medtasks.judge.settings import Budget
from medtasks.judge.store import StoredVerdict, VerdictStore


def test_every_request_is_answered_once_in_its_slot_and_accounted() -> None:
    server = TinyEndpoint(latency=0.02)
    asked = run(server, questions(60), concurrency=8)
    assert {name: asked.text(name) for name in asked.outcomes} == {
        f"q{n}": f"q{n}" for n in range(60)
    }
    assert asked.spent == Spent(requests=60, answered=60, prompt_tokens=600, completion_tokens=180)
    assert server.peak == server.connections == 8


def test_the_request_carries_the_settings() -> None:
    server = TinyEndpoint()
    run(
        server,
        [question("q", SCHEMA)],
        max_tokens=7,
        extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    )
    body = server.arrivals[0].body
    assert body.pop("response_format")["json_schema"]["schema"] == SCHEMA
    assert body == {
        "model": "judge",
        "messages": [{"role": "user", "content": "q"}],
        "temperature": 0,
        "max_tokens": 7,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    run(server, [question("q")], temperature=None, max_tokens=None)
    assert server.arrivals[1].body.keys() == {"model", "messages"}


def test_max_completion_tokens_takes_the_place_of_max_tokens() -> None:
    server = TinyEndpoint()
    run(server, [question("q")], max_completion_tokens=9)
    assert server.arrivals[0].body["max_completion_tokens"] == 9
    assert "max_tokens" not in server.arrivals[0].body


def test_a_token_budget_lets_those_in_flight_finish_and_needs_an_endpoint_that_counts() -> None:
    asked = run(
        TinyEndpoint(latency=0.01), questions(40), concurrency=4, budget=Budget(max_tokens=13 * 10)
    )
    assert 10 <= asked.spent.answered <= 13
    assert asked.spent.answered + asked.spent.failed == 40
    assert asked.spent.tokens == 13 * asked.spent.answered
    absurd = {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": 10**20}}
    asked = run(TinyEndpoint(Http(body=json.dumps(absurd))), questions(1))
    assert asked.spent == Spent(requests=1, answered=1, unmetered=1)
    asked = run(
        TinyEndpoint(said("yes", usage=False)),
        questions(9),
        concurrency=1,
        budget=Budget(max_tokens=1000),
    )
    assert (asked.spent.answered, asked.spent.unmetered, asked.spent.failed) == (1, 1, 8)
    assert asked.reason("q8") == "budget"


def test_refusals_and_empty_answers_are_told_apart_and_no_text_breaks_the_exchange() -> None:
    long = "reasoning " * 100_000
    replies = {"refused": said(None, refusal="I cannot"), "empty": said(None), "long": said(long)}
    replies["lone \ufffd"] = said("a\ud800b")
    names = ("refused", "empty", "lone \ud800", "long")  # a lone surrogate is sent as a replacement
    asked = run(
        TinyEndpoint(lambda arrival: replies[arrival.question]), [question(name) for name in names]
    )
    assert asked.outcomes["refused"] == JudgeAnswer("I cannot", 10, 3, Ending.REFUSED)
    assert asked.outcomes["empty"] == JudgeAnswer("", 10, 3)
    assert (asked.text("lone \ud800"), asked.text("long")) == ("a\ufffdb", long)


def test_retry_after_is_obeyed() -> None:
    server = TinyEndpoint(
        lambda arrival: problem(429, Retry_After="0.3") if arrival.nth == 1 else said("yes")
    )
    asked = run(server, questions(6), concurrency=3)
    for number in range(6):
        first, second = server.asked(f"q{number}")
        assert second.at - first.at >= 0.29
    assert (asked.spent.answered, asked.spent.requests, asked.spent.retries) == (6, 12, 6)


NOON = "Sat, 28 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.25"}, 0.25),
        ({"retry-after-ms": "200", "Retry-After": "9"}, 0.2),
        ({"Retry-After": "Sat, 28 Nov 2026 12:01:30 GMT", "Date": NOON}, 90),
        ({"Retry-After": "Saturday, 28-Nov-26 12:00:05 GMT", "Date": NOON}, 5),
        ({"Retry-After": "Sat Nov 28 12:00:05 2026", "Date": NOON}, 5),
        ({"Retry-After": "Sat, 28 Nov 2026 14:00:05 +0200", "Date": NOON}, 5),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT", "Date": NOON}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Sat, 31 Feb 99999 99:99:99 +9999"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_asked_for_in_seconds_or_until_a_date_of_the_server_s_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert seconds_to_wait(headers) == seconds


def test_without_a_date_of_the_server_a_wait_is_until_that_of_this_machine() -> None:
    until = datetime.now(timezone.utc) + timedelta(minutes=10)
    wait = seconds_to_wait({"Retry-After": format_datetime(until, usegmt=True)})
    assert wait == pytest.approx(600, abs=60)


def test_a_retry_after_that_is_a_date_is_obeyed() -> None:
    refused = problem(429, Retry_After="Sat, 28 Nov 2026 12:00:01 GMT", Date=NOON)
    server = TinyEndpoint(lambda arrival: refused if arrival.nth == 1 else said("yes"))
    run(server, questions(1))
    first, second = server.asked("q0")
    assert second.at - first.at >= 0.99


def test_a_refusing_endpoint_gets_fewer_requests_at_once() -> None:
    async def respond(_: Arrival) -> Http:
        await asyncio.sleep(0.01)
        return problem(429) if server.in_flight > 4 else said("yes")

    server = TinyEndpoint(respond)
    asked = run(server, questions(150), concurrency=32, retries=50)
    assert asked.spent.answered == 150
    assert asked.client._limiter.limit < 32
    late = server.arrivals[len(server.arrivals) // 2 :]
    assert len(late) < 150  # most requests of the later half are answered the first time


def test_the_limit_halves_once_per_round_of_refusals_and_grows_back() -> None:
    async def main() -> list[int]:
        limiter = RateLimiter(8, 8)
        limits = []
        for _ in range(2):  # all of a round were sent before its first refusal
            entered = [await limiter.enter() for _ in range(limiter.limit)]
            for number in entered:
                limiter.refused(number, 0)
                limiter.leave()
            limits.append(limiter.limit)
        for _ in range(100):
            limiter.answered()
        limits.append(limiter.limit)
        return limits

    assert asyncio.run(main()) == [4, 2, 8]


def test_a_refusing_endpoint_is_left_alone_for_as_long_as_it_asks() -> None:
    async def main() -> float:
        loop, limiter = asyncio.get_running_loop(), RateLimiter(4, 4)
        for _ in range(2):  # nothing was answered in between
            limiter.refused(await limiter.enter(), 0.2)
            refused = loop.time()
            limiter.leave()
        await limiter.enter()
        return loop.time() - refused

    assert asyncio.run(main()) >= 0.19


def test_a_passing_fault_is_retried() -> None:
    passing = [
        problem(500),
        problem(408),
        Http(body="<html>"),
        Http(body="[]"),
        replace(said("yes"), cut=True),
    ]
    server = TinyEndpoint(
        lambda arrival: passing[int(arrival.question[1:])] if arrival.nth == 1 else said("yes")
    )
    asked = run(server, questions(5))
    assert {asked.text(name) for name in asked.outcomes} == {"yes"}
    assert (asked.spent.requests, asked.spent.retries, asked.spent.failed) == (10, 5, 0)


def test_a_timeout_is_retried_and_leaves_nothing_for_the_next_request() -> None:
    async def respond(arrival: Arrival) -> Http:
        await asyncio.sleep(3600 if arrival.question == "slow" or arrival.nth == 1 else 0)
        return said(arrival.question)

    settings = {
        "timeout": 0.2,
        "retries": 4,
        "backoff": 0,
        "concurrency": 1,
    }  # a busy machine may spoil an attempt
    asked = run(TinyEndpoint(respond), [question("slow"), question("quick")], **settings)
    assert asked.reason("slow") == "timeout: no answer within 0.2 s (5 attempts)"
    assert asked.text("quick") == "quick"
    drips = run(
        TinyEndpoint(Http(body="{", announced=100)), [question("q")], timeout=0.2, retries=0
    )
    assert drips.reason("q") == "timeout: no answer within 0.2 s"


@pytest.mark.parametrize("charset", ["zlib", "hex", "rot13", "utf-16", "idna", "unknown"])
def test_the_charset_of_an_error_is_ignored(charset: str) -> None:
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    asked = run(TinyEndpoint(Http(500, "no worker", headers)), [question("q")], retries=0)
    assert asked.reason("q") == "http 500: no worker"


@pytest.mark.parametrize(
    "reply", [b"", b"not HTTP\r\n\r\n", b"HTTP/1.1 200 \xff\r\nContent-Length: 0\r\n\r\n"]
)
def test_what_is_not_http_fails_its_request_alone(reply: bytes) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(reply)
        await writer.drain()
        writer.close()

    async def main() -> Asked:
        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            address = f"http://{host}:{port}/v1"
            settings = JudgeSettings(base_url=address, model="judge", retries=0)
            return await ask(JudgeClient(settings), [question("q")])

    assert asyncio.run(main()).reason("q").startswith("connection: ")


def test_an_address_that_the_client_cannot_read_is_named() -> None:
    settings = JudgeSettings(base_url="http://\u00e4_b.invalid/v1", model="judge")
    with pytest.raises(UsageError, match=r"base_url .* cannot be used"):
        asyncio.run(ask(JudgeClient(settings), [question("q")]))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refused_request_fails_at_once_and_ends_all_if_nothing_was_answered_by_an_endpoint_that_shuts_us_out(
    status: int,
) -> None:
    server = TinyEndpoint(problem(status, "not like this"))
    asked = run(server, questions(120), concurrency=4)
    assert asked.reason("q0") == f"http {status}: not like this"
    if status in (401, 403, 404):
        assert len(server.arrivals) <= 4
        assert asked.reason("q119") == f"outage: http {status}: not like this"
    else:  # the fault of each request
        assert len(server.arrivals) == 120
    answered = TinyEndpoint(
        lambda arrival: problem(status, "no") if arrival.question == "q5" else said("yes")
    )
    asked = run(answered, questions(30), concurrency=1)
    assert (asked.spent.answered, asked.spent.failed, asked.reason("q5")) == (
        29,
        1,
        f"http {status}: no",
    )


def test_an_endpoint_that_fails_everything_is_left_alone() -> None:
    server = TinyEndpoint(problem(503, "no worker"))
    asked = run(server, questions(200), concurrency=4, retries=0)
    assert len(server.arrivals) < 60
    assert (
        asked.reason("q199")
        == "outage: 50 requests in a row failed, the last with http 503: no worker"
    )


def test_a_server_without_structured_output_is_remembered_unless_that_was_demanded() -> None:
    def respond(arrival: Arrival) -> Http:
        return problem(400, "response_format") if "response_format" in arrival.body else said("yes")

    demanded = run(TinyEndpoint(respond), [question("q", SCHEMA)], structured=True)
    assert demanded.reason("q") == "http 400: response_format"
    server = TinyEndpoint(respond)
    asked = run(server, [question(f"q{n}", SCHEMA) for n in range(5)], concurrency=1)
    assert ["response_format" in arrival.body for arrival in server.arrivals] == [True] + [
        False
    ] * 5
    assert (asked.spent.answered, asked.spent.retries, asked.client.structured) == (5, 1, False)
    server = TinyEndpoint(
        lambda arrival: problem(400, "too long") if arrival.question == "q0" else said("yes")
    )
    asked = run(server, [question(f"q{n}", SCHEMA) for n in range(3)], concurrency=1)
    assert (
        asked.reason("q0") == "http 400: too long"
    )  # which the request was, with and without a schema
    assert [("response_format" in arrival.body) for arrival in server.arrivals] == [
        True,
        False,
        True,
        True,
    ]
    assert asked.client.structured is True


def test_a_redirect_is_named_and_no_prompt_is_sent_there() -> None:
    async def main() -> None:
        async with TinyEndpoint() as there:
            url = there.url + "/chat/completions"
            async with TinyEndpoint(problem(308, Location=url)) as here:
                asked = await ask(client_of(here, concurrency=1), questions(5))
            assert (len(here.arrivals), len(there.arrivals)) == (1, 0)
        assert f"http 308: redirects to {url}, which is not followed; name the" in asked.reason(
            "q0"
        )
        assert asked.reason("q4").startswith("outage: http 308: redirects to")

    asyncio.run(main())


def test_a_proxy_of_the_environment_is_used_but_for_what_is_excepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = JudgeSettings(base_url="http://judge.invalid/v1", model="judge")

    async def main() -> tuple[Asked, list[Arrival]]:
        async with TinyEndpoint() as proxy:
            monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
            return await ask(JudgeClient(settings), [question("q", SCHEMA)]), proxy.arrivals

    asked, arrivals = asyncio.run(main())
    assert asked.text("q") == "q"
    assert [arrival.headers["host"] for arrival in arrivals] == ["judge.invalid"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert run(TinyEndpoint(), [question("q")]).text("q") == "q"
    monkeypatch.delenv("http_proxy")
    monkeypatch.setenv("all_proxy", "socks5://me:secret@127.0.0.1:9")
    with pytest.raises(UsageError, match=r"for judge.* has scheme 'socks5'") as raised:
        asyncio.run(ask(JudgeClient(settings), [question("q")]))
    assert "secret" not in str(raised.value)


def test_variables_of_openai_change_neither_the_address_nor_what_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "organization")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"Host: elsewhere\nAuthorization: Bearer {KEY}")
    server = TinyEndpoint()
    assert run(server, [question("q")], api_key_env="JUDGE_KEY").text("q") == "q"
    (arrival,) = server.arrivals
    assert arrival.headers["host"].startswith("127.0.0.1:")
    assert arrival.headers.keys() == {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-stainless-retry-count",
    }


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        [*made.split(), "-keyout", "key", "-out", "cert"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def main() -> Asked:
        async with TinyEndpoint(tls=context) as server:
            address = server.url.replace("http://127.0.0.1", "https://localhost")
            return await ask(
                JudgeClient(JudgeSettings(base_url=address, model="judge", retries=0)),
                [question("q")],
            )

    assert re.match("connection: .*certificate", asyncio.run(main()).reason("q"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    assert asyncio.run(main()).text("q") == "q"


def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    (tmp_path / "netrc").write_text("default login me password secret\n")  # which are nobody's here
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    caplog.set_level(logging.DEBUG)

    async def respond(arrival: Arrival) -> Http:
        heard = arrival.headers["authorization"]  # an endpoint that repeats what it was told
        hidden = heard.replace("-", "\\u002d")
        replies = {
            "error": problem(401, f"wrong: {heard}"),
            "said": said(heard),
            "junk": Http(body="x" * 60 + heard),
            "hidden": Http(status=400, body='{"detail": [{"msg": "' + hidden + '"}]}'),
            "hidden answer": Http(body='{"detail": "' + hidden + '"}'),
        }
        return replies[arrival.question]

    server = TinyEndpoint(respond)
    names = ("error", "said", "junk", "hidden", "hidden answer")
    asked = run(server, [question(name) for name in names], api_key_env="JUDGE_KEY", retries=1)
    assert asked.reason("hidden") == 'http 400: {"detail": [{"msg": "Bearer [API key]"}]}'
    assert {arrival.headers["authorization"] for arrival in server.arrivals} == {f"Bearer {KEY}"}
    assert asked.text("said") == "Bearer [API key]"
    assert asked.reason("error") == "http 401: wrong: Bearer [API key]"
    with VerdictStore(tmp_path / "v.sqlite3") as store:
        store.put(StoredVerdict("k", "p", asked.text("said"), None, asked.reason("junk"), 0, 0))
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    settings = asked.client.settings
    everything = [
        repr(asked.outcomes),
        repr(vars(asked.client)),
        settings.model_dump_json(),
        caplog.text,
    ]
    assert KEY[:12] not in "".join(everything)
    assert KEY.replace("-", "\\u002d")[:12] not in "".join(everything)
    assert KEY.encode() not in written
    monkeypatch.setenv("JUDGE_KEY", KEY + "\u00e9")  # which no header can carry
    with pytest.raises(UsageError, match="JUDGE_KEY does not contain an API key") as caught:
        asyncio.run(ask(JudgeClient(settings), []))
    assert KEY not in "".join(traceback.format_exception(caught.value))

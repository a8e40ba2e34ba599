"""HTTP to the judge: connections, redirects, proxies, and responses that are no answers."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
from dataclasses import replace
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
from medtasks.judge.client import JudgeClient, JudgeSettings
from medtasks.judge.endpoint import LARGEST_BODY


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_response_is_cut_off_and_fails_that_request_alone(status: int) -> None:
    server = TinyEndpoint(
        lambda arrival: Http(status, "x" * 2**16, endless=True) if arrival.question == "q1" else said("yes")
    )
    asked = run(server, questions(3), concurrency=1)
    assert asked.reason("q1") == "bad reply: the response has more than 8 MB"
    assert len(server.asked("q1")) == 1
    assert server.sent < 3 * LARGEST_BODY  # what the sockets hold comes on top
    assert (asked.text("q0"), asked.text("q2")) == ("yes", "yes")


def test_a_response_that_announces_too_much_is_not_read() -> None:
    asked = run(TinyEndpoint(Http(body="{}", announced=4 * 2**30)), [question("q")], timeout=60)
    assert asked.reason("q") == "bad reply: the response has more than 8 MB"


def test_a_long_answer_is_read_whole() -> None:
    text = "reasoning " * 100_000

    assert run(TinyEndpoint(said(text)), [question("q")]).text("q") == text


def test_a_response_that_drips_ends_with_the_time_limit() -> None:
    asked = run(TinyEndpoint(Http(body="{", announced=100)), [question("q")], timeout=0.2, retries=0)
    assert asked.reason("q") == "timeout: no answer within 0.2 s"


def test_what_is_not_http_is_a_connection_failure() -> None:
    async def main() -> Asked:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 SMTP ready\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            return await ask(JudgeClient(JudgeSettings(base_url=address, model="judge", retries=0)), [question("q")])

    assert asyncio.run(main()).reason("q").startswith("connection: ")


def test_many_questions_share_as_many_connections_as_slots() -> None:
    server = TinyEndpoint()
    run(server, questions(60), concurrency=4)
    assert server.connections == 4


def test_a_request_that_is_given_up_leaves_nothing_for_the_next() -> None:
    async def respond(arrival: Arrival) -> Http:
        await asyncio.sleep(3600 if arrival.question == "slow" else 0)
        return said(arrival.question)

    settings = {"timeout": 0.2, "retries": 4, "backoff": 0, "concurrency": 1}  # a busy machine may spoil an attempt
    asked = run(TinyEndpoint(respond), [question("slow"), question("quick")], **settings)
    assert asked.reason("slow") == "timeout: no answer within 0.2 s (5 attempts)"
    assert asked.text("quick") == "quick"


@pytest.mark.parametrize("status", [301, 308])
def test_a_redirect_is_named_and_no_prompt_is_sent_there(status: int) -> None:
    async def main() -> tuple[Asked, int, int]:
        async with TinyEndpoint() as there:
            url = there.url + "/chat/completions"

            async with TinyEndpoint(problem(status, Location=url)) as here:
                asked = await ask(client_of(here, concurrency=1), questions(5))
                assert f"http {status}: redirects to {url}, which is not followed; name the" in asked.reason("q0")
                return asked, len(here.arrivals), len(there.arrivals)

    asked, here, there = asyncio.run(main())
    assert (here, there) == (1, 0)
    assert asked.reason("q4").startswith(f"outage: http {status}: redirects to")


def test_a_compressed_answer_is_read_within_the_limit() -> None:
    def respond(arrival: Arrival) -> Http:
        whole = said("x" * (2**25 if arrival.question == "q1" else 3))
        return replace(whole, body=gzip.compress(whole.body.encode(), 1), headers={"Content-Encoding": "gzip"})

    asked = run(TinyEndpoint(respond), questions(3), retries=0)
    assert (asked.text("q0"), asked.text("q2")) == ("xxx", "xxx")
    assert asked.reason("q1") == "bad reply: the response has more than 8 MB"


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[Asked, list[Arrival]]:
        async with TinyEndpoint() as proxy:
            monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
            settings = JudgeSettings(base_url="http://judge.invalid/v1", model="judge")
            return await ask(JudgeClient(settings), [question("q", SCHEMA)]), proxy.arrivals

    asked, arrivals = asyncio.run(main())
    assert asked.text("q") == "q"
    assert [arrival.headers["host"] for arrival in arrivals] == ["judge.invalid"]


def test_a_proxy_is_not_used_for_what_is_excepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert run(TinyEndpoint(), [question("q")]).text("q") == "q"


def test_a_proxy_of_another_kind_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://me:secret@127.0.0.1:9")
    client = JudgeClient(JudgeSettings(base_url="http://judge.invalid/v1", model="judge"))
    with pytest.raises(UsageError, match=r"for judge.* has scheme 'socks5'") as raised:
        asyncio.run(ask(client, [question("q")]))
    assert "secret" not in str(raised.value)


def test_passwords_of_netrc_are_nobody_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = TinyEndpoint()
    run(server, [question("q")])
    assert server.arrivals[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
@pytest.mark.parametrize("trusted", [False, True])
def test_tls_is_verified(trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run([*made.split(), "-keyout", "key", "-out", "cert"], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))

    async def main() -> Asked:
        async with TinyEndpoint(tls=context) as server:
            address = server.url.replace("http://127.0.0.1", "https://localhost")
            return await ask(JudgeClient(JudgeSettings(base_url=address, model="judge", retries=0)), [question("q")])

    asked = asyncio.run(main())
    if trusted:
        assert asked.text("q") == "q"
    else:
        assert asked.reason("q").startswith("connection: ")
        assert "certificate" in asked.reason("q")

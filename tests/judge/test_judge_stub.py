"""The stub endpoint, as the real OpenAI clients meet it: verdicts, faults, order of service, HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion

from medtasks.errors import UsageError
from medtasks.judge.quoting import delimited
from medtasks.judge.stub import FAULT_KINDS, MODEL, Faults, StubJudge, rule_based
from medtasks.judge.stub.__main__ import main as foreground

SCHEMA_OF_VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
        "covered": {"type": "boolean"},
        "grade": {"type": "string", "enum": ["wrong", "partial", "correct"]},
        "aspects": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/aspect"}},
        "note": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 10}]},
        "reason": {"type": "string"},
    },
    "required": ["score", "covered", "grade", "aspects", "note", "reason"],
    "additionalProperties": False,
    "$defs": {
        "aspect": {
            "type": "object",
            "properties": {"value": {"enum": [0, 1]}, "reason": {"type": "string"}},
            "required": ["value", "reason"],
        }
    },
}


def prompt(response: str, reference: str = "two polyps") -> str:
    return f"Compare.\nReference answer: {reference}\n{delimited(response)}\nAnswer."


def body(text: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    wanted = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
    asked = {"model": "any", "messages": [{"role": "user", "content": text}]}
    return asked if schema is None else asked | {"response_format": wanted}


def ask(stub: StubJudge, text: str, schema: Mapping[str, Any] | None = None, retries: int = 0) -> ChatCompletion:
    with openai.OpenAI(base_url=stub.url, api_key="sk-planted", max_retries=retries) as client:
        answer = client.chat.completions.create(**body(text, schema))
    assert isinstance(answer, ChatCompletion)
    return answer


def content(answer: ChatCompletion) -> str:
    found = answer.choices[0].message.content
    assert found is not None
    return found


def only(fault: str, **more: Any) -> Faults:
    return Faults(**{fault: 1.0, **more})


def encoded(text: str) -> bytes:
    """A request whose bytes, and so its faults, depend on no client's version."""
    return json.dumps(body(text)).encode()


async def flood(url: str, numbers: Iterable[int]) -> None:
    async with httpx.AsyncClient(timeout=None) as client:
        waiting = [client.post(f"{url}/chat/completions", content=encoded(str(i))) for i in numbers]
        await asyncio.gather(*waiting, return_exceptions=True)


def connect(stub: StubJudge) -> socket.socket:
    host, port = stub.url.removeprefix("http://").removesuffix("/v1").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        threading.Event().wait(0.01)


def exchange(stub: StubJudge, sent: bytes) -> bytes:
    """What comes back on one connection until it closes; our sending half stays open."""
    with connect(stub) as wire:
        wire.sendall(sent)
        return b"".join(iter(lambda: wire.recv(65536), b""))


def test_a_plain_answer_and_its_accounting() -> None:
    with StubJudge(lambda request: f"seen {request['messages'][0]['content']}") as stub:
        answer = ask(stub, "one two three")
        assert content(answer) == "seen one two three"
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 4, 7)
        [received] = stub.requests
        assert received.body["messages"][0]["content"] == "one two three"
        assert (received.attempt, received.outcome, received.with_key) == (1, "ok", True)
        assert "sk-planted" not in repr(vars(stub)) + repr(stub.requests)
        assert answer.model == "any"
        with openai.OpenAI(base_url=stub.url, api_key="none") as client:
            assert [model.id for model in client.models.list()] == [MODEL] == ["stub-judge"]
        assert stub.counts == {"ok": 1, "models": 1}


def test_the_verdict_fills_the_schema() -> None:
    with StubJudge() as stub:
        full = json.loads(content(ask(stub, prompt("I see Two  polyps, both sessile."), SCHEMA_OF_VERDICT)))
        least = json.loads(content(ask(stub, prompt("I see a polyp."), SCHEMA_OF_VERDICT)))
    reason = "stub: the text has the reference's words"
    aspects = [{"value": 1, "reason": reason}] * 2
    assert full == {
        "score": 5,
        "covered": True,
        "grade": "correct",
        "aspects": aspects,
        "note": reason[:10],
        "reason": reason,
    }
    assert (least["score"], least["covered"], least["grade"]) == (1, False, "wrong")
    assert [aspect["value"] for aspect in least["aspects"]] == [0, 0]
    assert list(least) == SCHEMA_OF_VERDICT["required"]


def test_an_endless_schema_is_refused() -> None:
    endless = {"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]}
    with StubJudge() as stub, pytest.raises(openai.BadRequestError, match="without end"):
        ask(stub, prompt("two polyps"), endless)


def test_a_server_without_structured_output() -> None:
    with StubJudge(structured=False) as stub:
        with pytest.raises(openai.BadRequestError, match="response_format") as caught:
            ask(stub, prompt("two polyps"), SCHEMA_OF_VERDICT)
        assert caught.value.param == "response_format"
        assert content(ask(stub, prompt("two polyps"))) == "correct"
        assert stub.counts == {"response_format_refused": 1, "ok": 1}


def test_64_requests_at_once_over_kept_connections() -> None:
    async def rounds(url: str) -> list[str]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            answers = []
            for turn in range(2):
                waiting = [client.chat.completions.create(**body(f"{turn} {i}")) for i in range(64)]
                answers += [content(answer) for answer in await asyncio.gather(*waiting)]
            return answers

    with StubJudge(lambda request: request["messages"][0]["content"], latency=0.05) as stub:
        assert asyncio.run(rounds(stub.url)) == [f"{turn} {i}" for turn in range(2) for i in range(64)]
        assert stub.counts == {"ok": 128}
        assert stub.connections <= 64


def test_the_capacity_makes_requests_wait_their_turn() -> None:
    with StubJudge(latency=0.01, capacity=3) as stub:
        asyncio.run(flood(stub.url, range(24)))
        assert stub.counts == {"ok": 24}
        assert stub.peak <= 3


@pytest.mark.parametrize(("capacity", "served"), [(None, 64), (3, 3)])
def test_as_many_as_the_capacity_are_served_at_once(capacity: int | None, served: int) -> None:
    async def hold() -> None:
        asking = asyncio.ensure_future(flood(stub.url, range(64)))
        while len(stub.requests) < 64:
            await asyncio.sleep(0.01)
        asking.cancel()

    with StubJudge(latency=3600, capacity=capacity) as stub:
        asyncio.run(hold())
    assert stub.peak == served


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("too_many", openai.RateLimitError),
        ("server_error", openai.InternalServerError),
        ("cut", openai.APIConnectionError),
        ("duplicate", openai.APIConnectionError),
    ],
)
def test_faults_that_a_client_raises(fault: str, error: type[openai.APIError]) -> None:
    with StubJudge(faults=only(fault, retry_after=0.25)) as stub:
        with pytest.raises(error) as caught:
            ask(stub, prompt("two polyps"), SCHEMA_OF_VERDICT)
        if isinstance(caught.value, openai.RateLimitError):
            assert caught.value.response.headers["retry-after"] == "0.25"
        assert stub.counts == {fault: 1}
        assert stub.requests[0].outcome == fault


def test_a_duplicate_is_answered_twice() -> None:
    with StubJudge(faults=Faults(duplicate=1.0)) as stub:
        assert content(ask(stub, prompt("two polyps"), retries=1)) == "correct"
        assert [(one.attempt, one.outcome) for one in stub.requests] == [(1, "duplicate"), (2, "ok")]
        assert len({one.digest for one in stub.requests}) == 1


def test_a_duplicate_has_delivered_the_whole_answer() -> None:
    sent = encoded(prompt("two polyps"))
    with StubJudge(faults=Faults(duplicate=1.0)) as stub:
        came = exchange(stub, b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(sent) + sent)
    head, _, arrived = came.partition(b"\r\n\r\n")
    assert json.loads(arrived)["choices"][0]["message"]["content"] == "correct"
    assert b"Content-Length: %d\r\n" % (len(arrived) + 1) in head


def spoilt(fault: str, text: str = "") -> ChatCompletion:
    with StubJudge(faults=only(fault)) as stub:
        answer = ask(stub, prompt("two polyps") + text, SCHEMA_OF_VERDICT)
        assert stub.counts == {fault: 1}
        return answer


def test_faults_within_the_content() -> None:
    good = rule_based(body(prompt("two polyps"), SCHEMA_OF_VERDICT))
    assert content(spoilt("slow")) == good
    cut = spoilt("truncated_json")
    assert content(cut) == good[: len(good) // 2]
    assert cut.choices[0].finish_reason == "length"
    prose = {content(spoilt("prose", f"\n{i}")) for i in range(12)}
    assert all(good in text and text.endswith("verdict.") for text in prose)
    assert {"```json" in text for text in prose} == {True, False}
    assert not set(json.loads(content(spoilt("wrong_keys")))) & set(SCHEMA_OF_VERDICT["required"])
    refusal = spoilt("refusal").choices[0].message
    assert refusal.content is None
    assert refusal.refusal is not None
    with StubJudge(faults=Faults(refusal=1.0)) as stub:
        assert content(ask(stub, prompt("two polyps"))).startswith("I cannot")


def test_a_burst_holds_for_the_same_body() -> None:
    faults = Faults(too_many=0.3, burst=3, retry_after=0.0)
    with StubJudge(faults=faults) as stub, httpx.Client() as client:
        for i in range(12):
            for _ in range(4):
                client.post(f"{stub.url}/chat/completions", content=encoded(str(i)))
        bodies = {one.digest: [o.outcome for o in stub.requests if o.digest == one.digest] for one in stub.requests}
    begun = [outcomes for outcomes in bodies.values() if outcomes[0] == "too_many"]
    assert begun
    assert len(begun) < 12
    assert all(outcomes[:3] == ["too_many"] * 3 for outcomes in begun)


def drawn(stub: StubJudge, numbers: Iterable[int]) -> dict[tuple[str, int], str]:
    """The outcome of each body's each attempt."""
    asyncio.run(flood(stub.url, numbers))
    return {(one.body["messages"][0]["content"], one.attempt): one.outcome for one in stub.requests}


def test_faults_repeat_with_the_seed_whatever_the_order() -> None:
    faults = Faults.mixed(0.72)
    numbers = list(range(30)) * 3
    with StubJudge(faults=faults, seed=7) as stub:
        first = drawn(stub, numbers)
        stub.reset()
        again = drawn(stub, reversed(numbers))
    with StubJudge(faults=faults, seed=8) as other:
        elsewhere = drawn(other, numbers)
    assert len(first) == 90
    assert first == again
    assert first != elsewhere
    assert set(first.values()) == {"ok", *FAULT_KINDS}


def test_rates_are_kept() -> None:
    faults = Faults.mixed(0.45)
    kinds = Counter(faults.draw(0, str(i), 1)[0] for i in range(4000))
    assert all(150 <= kinds[kind] <= 250 for kind in FAULT_KINDS)  # 200 expected, standard deviation 14


def test_a_reset_forgets_and_keeps_serving_open_connections() -> None:
    with StubJudge() as stub, httpx.Client() as client:
        for _ in range(2):
            assert client.post(f"{stub.url}/chat/completions", json=body("same")).status_code == 200
            assert [one.attempt for one in stub.requests] == [1]
            assert stub.counts == {"ok": 1}
            stub.reset()
            assert (stub.requests, stub.counts, stub.peak, stub.connections) == ([], {}, 0, 0)


def test_two_requests_on_one_connection() -> None:
    get = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n"
    with StubJudge() as stub:
        came = exchange(stub, get + b"\r\n" + get + b"Connection: close\r\n\r\n" + get + b"\r\n")
        assert came.count(b"HTTP/1.1 200 OK") == 2
        assert (stub.connections, stub.counts["models"]) == (1, 2)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /v1/models HTTP/9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /" + b"x" * 200_000,
    ],
)
def test_malformed_http_is_answered_400(sent: bytes) -> None:
    with StubJudge() as stub:
        assert exchange(stub, sent).startswith(b"HTTP/1.1 400 ")
        assert stub.counts == {"bad_request": 1}


@pytest.mark.parametrize(
    "sent",
    [
        *(b"{", b"\xff", b"[]", b"[" * 100_000, b'{"model": "m"}', b'{"model": "m", "messages": ["x"]}'),
        b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": true}',
        b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "response_format": "json"}',
    ],
)
def test_malformed_bodies_are_answered_400_and_the_connection_stays(sent: bytes) -> None:
    with StubJudge() as stub, httpx.Client() as client:
        answer = client.post(f"{stub.url}/chat/completions", content=sent)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
        assert client.get(f"{stub.url}/models").status_code == 200
        assert (stub.connections, stub.counts, stub.requests) == (1, {"bad_request": 1, "models": 1}, [])


def test_other_paths_and_methods() -> None:
    with StubJudge() as stub, httpx.Client() as client:
        assert client.get(f"{stub.url}/embeddings").status_code == 404
        assert client.get(f"{stub.url}/chat/completions").status_code == 405
        assert client.post(f"{stub.url}/chat/completions", content=iter([b"{}"])).status_code == 411


def test_a_client_that_hangs_up_is_not_counted_as_answered() -> None:
    sent = encoded("gone")
    with StubJudge(latency=1.0, capacity=1) as stub:
        with connect(stub) as wire:
            wire.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(sent) + sent)
            wait_for(lambda: stub.requests)
        ask(stub, "next")  # waits for the one place, so the first is finished by then
        assert stub.counts == {"undelivered": 1, "ok": 1}


def test_an_error_of_decide_reaches_client_and_caller() -> None:
    def decide(request: Mapping[str, Any]) -> str:
        raise LookupError(request["model"])

    stub = StubJudge(decide)
    with pytest.raises(LookupError, match="any"), stub, pytest.raises(openai.InternalServerError):
        ask(stub, "x")
    assert stub.counts == {"decide_failed": 1}


def test_leaving_ends_requests_under_way() -> None:
    failed: list[Exception] = []

    def wait(url: str) -> None:
        try:
            httpx.post(f"{url}/chat/completions", json=body("x"), timeout=60)
        except httpx.HTTPError as error:
            failed.append(error)

    with StubJudge(latency=3600) as stub:
        thread = threading.Thread(target=wait, args=(stub.url,))
        thread.start()
        wait_for(lambda: stub.requests)
    thread.join()
    assert len(failed) == 1
    with pytest.raises(UsageError, match="no address"):
        _ = stub.url


@pytest.mark.parametrize("rates", [{"cut": 1.5}, {"slow": -0.1}, {"cut": 0.6, "slow": 0.6}, {"burst": 0}])
def test_impossible_faults_are_refused(rates: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected"):
        Faults(**rates)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_share_of_faults_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="expected"):
        Faults.mixed(share)


def test_impossible_stubs_are_refused() -> None:
    with pytest.raises(UsageError, match="capacity=0"):
        StubJudge(capacity=0)
    with pytest.raises(UsageError, match="port=65536"):
        StubJudge(port=65536)


def test_a_taken_port_is_an_error_where_the_stub_is_entered() -> None:
    with StubJudge() as stub, pytest.raises(OSError, match="address"), StubJudge(port=port_of(stub.url)):
        pass


def port_of(url: str) -> int:
    port = httpx.URL(url).port
    assert port is not None
    return port


def test_requests_are_not_kept_where_nobody_reads_them() -> None:
    with StubJudge(keep_requests=False) as stub:
        ask(stub, prompt("two polyps"))
        assert (stub.requests, stub.counts) == ([], {"ok": 1})


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_in_the_foreground_it_prints_its_address_and_stops_at_a_signal(stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "medtasks.judge.stub", "--faults", "1", "--seed", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            with StubJudge(faults=Faults.mixed(1), seed=3) as here:
                assert outcome(url) == outcome(here.url)
            server.send_signal(stop)
            assert server.communicate(timeout=60) == ("", "")
        finally:
            server.kill()
    assert server.returncode == 0


def outcome(url: str) -> tuple[int, bytes]:
    """What a request with a fault brings; the seed decides which."""
    for number in range(20):
        try:
            answer = httpx.post(f"{url}/chat/completions", content=encoded(prompt(str(number))))
        except httpx.HTTPError:
            continue
        return answer.status_code, answer.content
    raise AssertionError("nothing but broken connections")


@pytest.mark.parametrize("options", [["--port", "99999"], ["--faults", "2"], ["--latency", "-1"], ["--latency", "x"]])
def test_impossible_options_are_refused_in_a_sentence(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        foreground(options)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err

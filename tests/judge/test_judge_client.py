"""The client against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from typing import Any

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
from medtasks.judge.endpoint import _retry_after
from medtasks.judge.settings import Budget
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.judge.stub import StubJudge


def test_every_request_is_answered_once_and_accounted() -> None:
    asked = run(TinyEndpoint(), questions(20), concurrency=4)
    assert {name: asked.text(name) for name in asked.outcomes} == {f"q{n}": f"q{n}" for n in range(20)}
    assert asked.spent == Spent(requests=20, answered=20, prompt_tokens=200, completion_tokens=60)


def test_the_request_carries_the_settings() -> None:
    server = TinyEndpoint()
    run(server, [question("q", SCHEMA)], max_tokens=7, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
    body = server.arrivals[0].body
    assert body.pop("response_format")["json_schema"]["schema"] == SCHEMA
    assert body == {
        "model": "judge",
        "messages": [{"role": "user", "content": "q"}],
        "temperature": 0,
        "max_tokens": 7,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_concurrency_is_reached_and_never_exceeded() -> None:
    server = TinyEndpoint(latency=0.02)
    run(server, questions(60), concurrency=8)
    assert server.peak == 8


def test_the_request_budget_is_kept_and_the_rest_reported() -> None:
    server = TinyEndpoint(latency=0.01)

    async def main() -> tuple[Asked, Asked]:
        async with server:
            client = client_of(server, concurrency=4, budget=Budget(max_requests=10))
            return await ask(client, questions(30)), await ask(client, [question("later")])

    first, second = asyncio.run(main())
    assert len(server.arrivals) == 10
    assert (first.spent.answered, first.spent.failed) == (10, 20)
    unasked = {f"q{n}" for n in range(30)} - {arrival.question for arrival in server.arrivals}
    assert [first.reason(name) for name in unasked] == ["budget"] * 20
    assert second.reason("later") == "budget"


def test_the_token_budget_lets_those_in_flight_finish() -> None:
    asked = run(TinyEndpoint(latency=0.01), questions(40), concurrency=4, budget=Budget(max_tokens=13 * 10))
    assert 10 <= asked.spent.answered <= 13
    assert asked.spent.answered + asked.spent.failed == 40
    assert asked.spent.tokens == 13 * asked.spent.answered


def test_a_token_budget_needs_an_endpoint_that_counts() -> None:
    absurd = {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": 10**20}}
    asked = run(TinyEndpoint(Http(body=json.dumps(absurd))), questions(1))
    assert asked.spent == Spent(requests=1, answered=1, unmetered=1)
    asked = run(TinyEndpoint(said("yes", usage=False)), questions(9), concurrency=1, budget=Budget(max_tokens=1000))
    assert (asked.spent.answered, asked.spent.unmetered, asked.spent.failed) == (1, 1, 8)
    assert asked.reason("q8") == "budget"


def test_refusals_and_empty_answers_are_told_apart_and_no_text_breaks_the_exchange() -> None:
    replies = {"refused": said(None, refusal="I cannot"), "empty": said(None), "lone \ufffd": said("a\ud800b")}
    names = ("refused", "empty", "lone \ud800")  # a lone surrogate is sent as a replacement
    asked = run(TinyEndpoint(lambda arrival: replies[arrival.question]), [question(name) for name in names])
    assert asked.outcomes["refused"] == JudgeAnswer("I cannot", 10, 3, True)
    assert asked.outcomes["empty"] == JudgeAnswer("", 10, 3, False)
    assert asked.text("lone \ud800") == "a\ufffdb"


def test_one_client_on_two_event_loops() -> None:
    with StubJudge(lambda _: "yes", latency=0.01) as stub:
        client = JudgeClient(JudgeSettings(base_url=stub.url, model="judge", concurrency=2))
        assert [asyncio.run(ask(client, questions(5))).spent.answered for _ in range(2)] == [5, 5]
    assert client.spent.answered == 10


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert _retry_after(headers) == seconds


def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
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
    everything = [repr(asked.outcomes), repr(vars(asked.client)), settings.model_dump_json(), caplog.text]
    assert KEY[:12] not in "".join(everything)
    assert KEY.replace("-", "\\u002d")[:12] not in "".join(everything)
    assert KEY.encode() not in written


def test_a_key_that_no_header_can_carry_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY + "\u00e9")
    client = JudgeClient(JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge", api_key_env="JUDGE_KEY"))
    with pytest.raises(UsageError, match="JUDGE_KEY does not contain an API key") as caught:
        asyncio.run(ask(client, []))
    assert KEY not in "".join(traceback.format_exception(caught.value))

"""The client against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator, Iterator
from datetime import date
from functools import partial
from typing import Any

import pytest
from asking import KEY, SCHEMA, Asked, ask, client_of, question, questions, run
from pydantic import ValidationError
from tiny_endpoint import Arrival, Http, TinyEndpoint, problem, said

from medtasks.errors import MediaError, UsageError
from medtasks.judge.client import Budget, Failure, JudgeAnswer, JudgeClient, JudgeRequest, JudgeSettings, Spent
from medtasks.judge.endpoint import _retry_after
from medtasks.judge.pace import Pace
from medtasks.judge.store import VerdictStore


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


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


def test_a_slow_request_holds_nobody_back() -> None:
    others = asyncio.Event()

    async def respond(arrival: Arrival) -> Http:
        if arrival.question == "q0":
            await others.wait()  # the reply to the first question comes when all the others have theirs
        elif arrival.question == "q29":
            others.set()
        return said("yes")

    asked = run(TinyEndpoint(respond), questions(30), concurrency=2)
    assert asked.order[-1] == "q0" or asked.order[-2:] == ["q0", "q29"]


def test_requests_are_read_as_places_become_free() -> None:
    read: list[str] = []
    ahead: list[int] = []

    def source() -> Iterator[JudgeRequest]:
        for one in questions(50):
            read.append(one.key)
            yield one

    async def respond(_: Arrival) -> Http:
        ahead.append(len(read))
        return said("yes")

    asked = run(TinyEndpoint(respond), source(), concurrency=2)
    assert len(asked.outcomes) == 50
    assert max(now - served for served, now in enumerate(ahead)) <= 6


def test_one_key_is_asked_once_and_told_to_all() -> None:
    server = TinyEndpoint(latency=0.01)
    told: list[str] = []

    async def main() -> Spent:
        async with server:
            twins = [question("q"), question("other"), question("q")]
            return await client_of(server).ask([*twins, *twins], lambda request, _: told.append(request.key))

    spent = asyncio.run(main())
    assert (len(server.arrivals), spent.answered) == (2, 2)
    assert sorted(told) == ["key of other"] * 2 + ["key of q"] * 4


def test_what_an_answer_leads_to_is_asked_next_and_waits_for_nobody() -> None:
    followed = asyncio.Event()

    async def respond(arrival: Arrival) -> Http:
        if arrival.question == "slow":
            await followed.wait()  # answered only when the follow-up of the other has come
        elif arrival.question == "more":
            followed.set()
        return said("yes")

    told: list[str] = []

    def take(request: JudgeRequest, _: JudgeAnswer | Failure) -> JudgeRequest | None:
        told.append(request.messages[0]["content"])  # type: ignore[index]
        return question("more") if told[-1] == "quick" else None

    async def main() -> Spent:
        async with TinyEndpoint(respond) as server:
            return await client_of(server, concurrency=2).ask([question("slow"), question("quick")], take)

    assert asyncio.run(main()).answered == 3
    assert (told[0], sorted(told[1:])) == ("quick", ["more", "slow"])


def test_an_asynchronous_source_is_read_to_its_end() -> None:
    async def source() -> AsyncIterator[JudgeRequest]:
        for one in questions(30):
            await asyncio.sleep(0)
            yield one

    told: list[str] = []

    async def main() -> Spent:
        async with TinyEndpoint() as server:
            return await client_of(server, concurrency=3).ask(source(), lambda request, _: told.append(request.key))

    assert asyncio.run(main()).answered == 30
    assert sorted(told) == sorted(one.key for one in questions(30))


def test_messages_are_made_when_they_are_sent_and_what_cannot_be_put_is_a_failure() -> None:
    made: list[str] = []
    ahead: list[int] = []

    def lazy(name: str) -> JudgeRequest:
        def messages() -> tuple[dict[str, Any], ...]:
            made.append(name)
            if name == "q7":
                raise MediaError("image 12ab is\nno image")
            return ({"role": "user", "content": name},)

        return JudgeRequest(name, messages, None)

    async def respond(_: Arrival) -> Http:
        ahead.append(len(made) - len(ahead))
        await asyncio.sleep(0.002)
        return said("yes")

    outcomes: dict[str, JudgeAnswer | Failure] = {}

    async def main() -> Spent:
        async with TinyEndpoint(respond) as server:
            asked = [lazy(f"q{number}") for number in range(30)]
            return await client_of(server, concurrency=2).ask(
                asked, lambda request, outcome: outcomes.update({request.key: outcome})
            )

    spent = asyncio.run(main())
    assert outcomes.pop("q7") == Failure("question: image 12ab is no image")
    assert len(outcomes) == spent.requests == spent.answered == 29
    assert max(ahead) <= 4  # those in flight, one answered and not yet counted, and the one that failed


def test_nothing_to_ask_needs_no_endpoint() -> None:
    client = JudgeClient(JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge"))
    assert asyncio.run(client.ask([], lambda *_: None)) == Spent()


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
    async def respond(_: Arrival) -> Http:
        return said("yes", usage=False)

    asked = run(TinyEndpoint(respond), questions(9), concurrency=1, budget=Budget(max_tokens=1000))
    assert (asked.spent.answered, asked.spent.unmetered, asked.spent.failed) == (1, 1, 8)
    assert asked.reason("q8") == "budget"


def test_refusals_and_empty_answers_are_told_apart() -> None:
    replies = {"refused": said(None, refusal="I cannot"), "empty": said(None), "lone": said("a\ud800b")}

    async def respond(arrival: Arrival) -> Http:
        return replies[arrival.question]

    asked = run(TinyEndpoint(respond), [question(name) for name in replies])
    assert asked.outcomes["refused"] == JudgeAnswer("I cannot", 10, 3, True)
    assert asked.outcomes["empty"] == JudgeAnswer("", 10, 3, False)
    assert asked.text("lone") == "a\ufffdb"


def test_a_lone_surrogate_in_a_prompt_is_sent_as_a_replacement() -> None:
    server = TinyEndpoint()
    run(server, [question("a\ud800b")])
    assert server.arrivals[0].question == "a\ufffdb"


def test_an_error_of_the_caller_ends_the_ask_and_the_client_goes_on() -> None:
    server = TinyEndpoint(latency=0.01)

    def fail(_: JudgeRequest, __: JudgeAnswer | Failure) -> None:
        raise OSError("the disk is full")

    async def main() -> Asked:
        async with server:
            client = client_of(server, concurrency=4)
            with pytest.raises(OSError, match="the disk is full"):
                await client.ask(questions(50), fail)
            return await ask(client, questions(50))

    assert asyncio.run(main()).spent.answered == 50


def test_a_client_serves_one_ask_at_a_time() -> None:
    server = TinyEndpoint(latency=0.01)

    async def main() -> None:
        async with server:
            client = client_of(server)
            await asyncio.gather(ask(client, questions(2)), ask(client, questions(2)))

    with pytest.raises(UsageError, match="asking already"):
        asyncio.run(main())


def test_one_client_on_two_event_loops() -> None:
    client: list[JudgeClient] = []

    async def main() -> Asked:
        async with TinyEndpoint() as server:
            client.append(client_of(server))
            client[-1].spent, client[-1]._pace = client[0].spent, client[0]._pace
            return await ask(client[-1], questions(5))

    assert [asyncio.run(main()).spent.answered for _ in range(2)] == [5, 5]
    assert client[0].spent.answered == 10


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


def test_pace_halves_once_per_round_and_grows_back() -> None:
    async def main() -> list[int]:
        pace = Pace(8)
        limits = []
        entered = [await pace.enter() for _ in range(8)]
        for number in entered:  # all were sent before the first refusal: one is stray, the others halve once
            pace.refused(number, 0)
            pace.leave()
        limits.append(pace.limit)
        for _ in range(8):
            pace.answered()
        limits.append(pace.limit)
        for _ in range(100):
            pace.answered()
        limits.append(pace.limit)
        pace.refused(await pace.enter(), 0)  # alone
        limits.append(pace.limit)
        return limits

    assert asyncio.run(main()) == [4, 8, 8, 8]


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
        store.put("k", prompt="p", answer=asked.text("said"), parsed=None, reason=asked.reason("junk"), **NO_TOKENS)
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    settings = asked.client.settings
    everything = [repr(asked.outcomes), repr(vars(asked.client)), settings.model_dump_json(), caplog.text]
    assert KEY[:12] not in "".join(everything)
    assert KEY.replace("-", "\\u002d")[:12] not in "".join(everything)
    assert KEY.encode() not in written


NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0}


@pytest.mark.parametrize(
    "address", ["http://judge..local/v1", "http://h:80000/v1", "http://h:abc/v1", "http://[::1/v1"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValidationError) as raised:
        JudgeSettings(base_url=address, model="judge")
    assert raised.value.errors()[0]["loc"] == ("base_url",)


@pytest.mark.parametrize("field", ["temperature", "timeout", "backoff"])
def test_numbers_are_finite(field: str) -> None:
    with pytest.raises(ValidationError):
        JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge", **{field: float("inf")})


def test_certificates_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    client = JudgeClient(JudgeSettings(base_url="https://127.0.0.1:9/v1", model="judge"))
    with pytest.raises(UsageError, match=r"^https://127\.0\.0\.1:9/v1: no client can be made"):
        asyncio.run(ask(client, questions(2)))


def test_a_count_of_tokens_that_no_judge_can_have_is_none() -> None:
    async def respond(_: Arrival) -> Http:
        message = {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": 10**20}}
        return Http(body=json.dumps(message))

    asked = run(TinyEndpoint(respond), questions(1))
    assert asked.spent == Spent(requests=1, answered=1, unmetered=1)


def test_a_text_among_images_is_asked_first_all_the_same() -> None:
    """What waits for the first request's head holds places, which the first needs."""

    async def main() -> Asked:
        async with TinyEndpoint() as server:
            made = [JudgeRequest("q0", _one_message("q0"), None)]
            made += [JudgeRequest(f"q{number}", partial(_one_message, f"q{number}"), None) for number in range(1, 6)]
            client = client_of(server, concurrency=2, structured=True)
            asked = Asked(client)
            asked.spent = await asyncio.wait_for(
                client.ask(made, lambda one, got: asked.outcomes.update({one.key: got})), 10
            )
            return asked

    asked = asyncio.run(main())
    assert asked.spent.answered == 6


def _one_message(text: str) -> tuple[dict[str, Any], ...]:
    return ({"role": "user", "content": text},)


@pytest.mark.parametrize("part", [date(2026, 1, 2), float("nan"), {"deep": [{1, 2}]}, "\ud800"])
def test_further_fields_of_the_request_must_be_json(part: Any) -> None:
    with pytest.raises(ValidationError, match="seen is no JSON") as raised:
        JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge", extra_body={"seen": part})
    assert raised.value.errors()[0]["loc"] == ("extra_body",)


@pytest.mark.parametrize(
    "wrong", [{"api_key_env": "sk-" + KEY}, {"base_url": f"http://u:{KEY}@host/v1"}, {"base_url": f"http://h/?k={KEY}"}]
)
def test_a_key_in_the_wrong_field_is_refused_unseen(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        JudgeSettings(**{"base_url": "http://host/v1", "model": "judge", **wrong})  # type: ignore[arg-type]
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


def test_a_key_that_no_header_can_carry_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY + "\u00e9")
    client = JudgeClient(JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge", api_key_env="JUDGE_KEY"))
    with pytest.raises(UsageError, match="JUDGE_KEY holds no API key") as caught:
        asyncio.run(client.ask([], lambda *_: None))
    assert KEY not in "".join(traceback.format_exception(caught.value))

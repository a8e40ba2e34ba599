"""The client where the endpoint fails: waits, retries, ends, and what it learns of the endpoint."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tiny_endpoint import (
    SCHEMA,
    Arrival,
    Http,
    TinyEndpoint,
    problem,
    question,
    questions,
    run,
    said,
)

from medtasks.judge.client import RateLimiter


def test_retry_after_is_obeyed() -> None:
    server = TinyEndpoint(lambda arrival: problem(429, Retry_After="0.3") if arrival.nth == 1 else said("yes"))
    asked = run(server, questions(6), concurrency=3)
    assert [asked.text(f"q{n}") for n in range(6)] == ["yes"] * 6
    for number in range(6):
        first, second = server.asked(f"q{number}")
        assert second.at - first.at >= 0.29
    assert (asked.spent.requests, asked.spent.retries) == (12, 6)


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


PASSING = (problem(500), problem(408), Http(body="<html>"), Http(body="[]"), replace(said("yes"), cut=True))


@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_is_retried(fault: Http) -> None:
    asked = run(TinyEndpoint(lambda arrival: fault if arrival.nth == 1 else said("yes")), questions(3))
    assert [asked.text(f"q{n}") for n in range(3)] == ["yes"] * 3
    assert (asked.spent.requests, asked.spent.retries, asked.spent.failed) == (6, 3, 0)


def test_a_timeout_is_retried() -> None:
    async def respond(arrival: Arrival) -> Http:
        if arrival.nth == 1:
            await asyncio.sleep(30)
        return said("yes")

    asked = run(TinyEndpoint(respond), [question("q")], timeout=0.3)
    assert asked.text("q") == "yes"
    assert asked.spent.retries >= 1  # a busy machine may spoil another


def test_retries_end_with_the_last_reason() -> None:
    server = TinyEndpoint(lambda arrival: problem(500, "the disk is full") if arrival.question == "q1" else said("yes"))
    asked = run(server, questions(3), retries=2)
    assert asked.reason("q1") == "http 500: the disk is full (3 attempts)"
    assert len(server.asked("q1")) == 3
    assert (asked.spent.answered, asked.spent.failed) == (2, 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refused_request_fails_at_once(status: int) -> None:
    server = TinyEndpoint(problem(status, "not like this"))
    asked = run(server, [question("q")])
    assert (asked.reason("q"), len(server.arrivals)) == (f"http {status}: not like this", 1)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_endpoint_that_shuts_everybody_out_is_left_alone_at_once(status: int) -> None:
    server = TinyEndpoint(problem(status, "not you"))
    asked = run(server, questions(200), concurrency=4)
    assert len(asked.outcomes) == 200
    assert len(server.arrivals) <= 4
    assert asked.reason("q0") == f"http {status}: not you"
    assert asked.reason("q199") == f"outage: http {status}: not you"


def test_one_question_that_is_forbidden_stops_nothing_where_others_were_answered() -> None:
    asked = run(
        TinyEndpoint(lambda arrival: problem(403, "flagged") if arrival.question == "q5" else said("yes")),
        questions(30),
        concurrency=1,
    )
    assert (asked.spent.answered, asked.spent.failed) == (29, 1)
    assert asked.reason("q5") == "http 403: flagged"


def test_an_endpoint_that_fails_everything_is_left_alone() -> None:
    server = TinyEndpoint(problem(503, "no worker"))
    asked = run(server, questions(200), concurrency=4, retries=0)
    assert len(server.arrivals) < 60
    assert asked.reason("q199") == "outage: 50 requests in a row failed, the last with http 503: no worker"


def test_faulty_requests_are_no_outage() -> None:
    server = TinyEndpoint(problem(400, "too long"))
    run(server, questions(120), concurrency=4)
    assert len(server.arrivals) == 120


def test_a_server_without_structured_output_is_remembered_unless_that_was_demanded() -> None:
    def respond(arrival: Arrival) -> Http:
        return problem(400, "response_format") if "response_format" in arrival.body else said("yes")

    demanded = run(TinyEndpoint(respond), [question("q", SCHEMA)], structured=True)
    assert demanded.reason("q") == "http 400: response_format"
    server = TinyEndpoint(respond)
    asked = run(server, [question(f"q{n}", SCHEMA) for n in range(5)], concurrency=1)
    assert ["response_format" in arrival.body for arrival in server.arrivals] == [True] + [False] * 5
    assert (asked.spent.answered, asked.spent.retries, asked.client.structured) == (5, 1, False)


def test_a_bad_request_does_not_look_like_a_server_without_structured_output() -> None:
    server = TinyEndpoint(lambda arrival: problem(400, "too long") if arrival.question == "q0" else said("yes"))
    asked = run(server, [question(f"q{n}", SCHEMA) for n in range(3)], concurrency=1)
    assert asked.reason("q0") == "http 400: too long"
    assert [("response_format" in arrival.body) for arrival in server.arrivals] == [True, False, True, True]
    assert asked.client.structured is True


def test_the_limit_halves_once_per_round_of_refusals_and_grows_back() -> None:
    async def main() -> list[int]:
        limiter = RateLimiter(8)
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
        loop, limiter = asyncio.get_running_loop(), RateLimiter(4)
        for _ in range(2):  # nothing was answered in between
            limiter.refused(await limiter.enter(), 0.2)
            refused = loop.time()
            limiter.leave()
        await limiter.enter()
        return loop.time() - refused

    assert asyncio.run(main()) >= 0.19

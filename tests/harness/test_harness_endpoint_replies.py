"""What becomes of responses that are not as expected, of rate limits, and of answers in flight when a
run ends, with clients that are functions of the tests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from medtasks.core.errors import MedtasksError
from medtasks.harness.endpoints import ask_endpoint
from medtasks.harness.endpoints.exchange import Exchange, RequestEnded, Traffic
from medtasks.harness.endpoints.failures import Failure
from medtasks.harness.endpoints.responses import reply_of_completion, reply_of_message
from medtasks.harness.endpoints.server_watch import ServerWatch
from medtasks.harness.requests import Requests
from medtasks.runs.replies import Reply, Slot


def completion(text: str | None, ending: str = "stop") -> SimpleNamespace:
    """A chat completion without usage."""
    message = SimpleNamespace(content=text, refusal=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason=ending)])


def test_a_response_that_cannot_be_read_is_not_paid_for_again() -> None:
    exchange = Exchange(Traffic(5, 0.0), reply_of_completion)
    with pytest.raises(RequestEnded):
        exchange.send(lambda: "<html>login</html>")
    assert exchange.attempts == 1
    assert exchange.reply is not None
    assert str(exchange.reply.failed).startswith("the response is not of the endpoint's protocol")


def test_a_message_without_usage_is_an_answer() -> None:
    block = SimpleNamespace(type="text", text="A")
    reply = reply_of_message(SimpleNamespace(stop_reason="end_turn", content=[block], usage=None))
    assert (reply.text, reply.finish, reply.input_tokens) == ("A", "stop", None)


@pytest.mark.parametrize(("ending", "finish"), [("eos_token", "stop"), ("model_length", "length")])
def test_endings_of_other_servers_are_not_blocks(ending: str, finish: str) -> None:
    reply = reply_of_completion(completion("A", ending))
    assert (reply.failed, reply.text, reply.finish) == (None, "A", finish)


class Limited(Exception):
    """A rate limit of one second, as openai's exceptions name it."""

    status_code = 429
    body = None
    response = SimpleNamespace(headers={"Retry-After": "1"})


def test_other_requests_wait_after_the_last_attempt_of_one_too() -> None:
    def refuse() -> None:
        raise Limited

    traffic = Traffic(1, 0.0)
    with pytest.raises(RequestEnded):
        Exchange(traffic, reply_of_completion).send(refuse)
    began = time.monotonic()
    assert traffic.wait()
    assert time.monotonic() - began > 0.5


def test_a_wrong_key_of_gemini_ends_the_run() -> None:
    watch = ServerWatch(SimpleNamespace())
    wrong = Failure("status 400: API key not valid", 400, has_wrong_key=True)
    for _ in range(3):
        watch.note_failure(wrong, 0)
    with pytest.raises(MedtasksError, match="refused the first 4 requests"):
        watch.note_failure(wrong, 0)


@dataclass(frozen=True)
class Request:
    """A request of the harness with its number."""

    arguments: tuple[Any, ...]

    @property
    def args(self) -> tuple[Any, ...]:
        return self.arguments


class BackEnd:
    """Stands for lmms-eval's ``openai``: its answer to each request is decided by ``answer``."""

    max_retries = 1
    num_concurrent = 3
    model_version = "m"

    def __init__(self, answer: Callable[[int], Any]) -> None:
        completions = SimpleNamespace(create=lambda number: answer(number))
        client = SimpleNamespace(chat=SimpleNamespace(completions=completions))
        client.with_options = lambda **_: client
        self.client = client

    def generate_until(self, requests: list[Request]) -> None:
        for request in requests:
            self.client.chat.completions.create(number=request.args[0])


BackEnd.__module__ = "lmms_eval.models.chat.openai"


def test_a_request_that_pads_the_share_of_a_process_is_not_sent() -> None:
    asked: list[int] = []
    padding = SimpleNamespace(
        task_name="task", doc_id=0, metadata={"__padding_only__": True}, args=(0,)
    )
    requests: Any = Requests(SimpleNamespace(), None, {"task"}, logged=False)  # type: ignore[arg-type]
    assert requests.execute(BackEnd(asked.append), "generate_until", [padding]) == [""]
    assert asked == []


def test_answers_in_flight_at_the_end_are_kept_in_the_order_of_their_arrival(
    capsys: pytest.CaptureFixture[str],
) -> None:
    all_sent = threading.Barrier(3)
    quick_is_kept = threading.Event()
    kept: list[int] = []

    def answer(number: int) -> Any:
        all_sent.wait(20)
        if number == 1:  # until the one behind it is stored
            assert quick_is_kept.wait(20)
        elif number == 2:
            time.sleep(0.1)
        return completion("A")

    def keep(slot: Slot, reply: Reply) -> None:
        assert reply.failed is None
        kept.append(slot.doc_id)
        if slot.doc_id == 0:
            raise KeyboardInterrupt
        if slot.doc_id == 2:
            quick_is_kept.set()

    requests = {Slot("task", number, 0, "?"): Request((number,)) for number in range(3)}
    with pytest.raises(KeyboardInterrupt):
        ask_endpoint(BackEnd(answer), requests, keep, lambda: 0)
    assert kept == [0, 2, 1]
    assert "waiting for 2 requests in flight" in capsys.readouterr().err


def test_a_second_interrupt_loses_no_answer_in_flight() -> None:
    interrupts = [KeyboardInterrupt(), KeyboardInterrupt()]
    all_sent = threading.Barrier(3)
    kept: list[int] = []

    def answer(number: int) -> Any:
        all_sent.wait(20)
        time.sleep(0.1 * number)
        return completion("A")

    def keep(slot: Slot, reply: Reply) -> None:
        assert reply.failed is None
        if slot.doc_id < 2 and interrupts:
            raise interrupts.pop()
        kept.append(slot.doc_id)

    requests = {Slot("task", number, 0, "?"): Request((number,)) for number in range(3)}
    with pytest.raises(KeyboardInterrupt):
        ask_endpoint(BackEnd(answer), requests, keep, lambda: 0)
    assert kept == [1, 2]

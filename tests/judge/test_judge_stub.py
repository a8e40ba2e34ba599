"""The stub endpoint, as openai's client meets it: verdicts, what is counted, what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion

from medtasks.catalog.quoting import delimited
from medtasks.judge.stub import MODEL, StubJudge

SCALE = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}, "score": SCALE}}


def body(text: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    wanted = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
    asked = {"model": "any", "messages": [{"role": "user", "content": text}]}
    return asked if schema is None else asked | {"response_format": wanted}


def ask(stub: StubJudge, text: str, schema: Mapping[str, Any] | None = None) -> ChatCompletion:
    with openai.OpenAI(base_url=stub.url, api_key="sk-planted", max_retries=0) as client:
        answer = client.chat.completions.create(**body(text, schema))
    assert isinstance(answer, ChatCompletion)
    return answer


def content(answer: ChatCompletion) -> str:
    found = answer.choices[0].message.content
    assert found is not None
    return found


def test_a_plain_answer_and_its_accounting() -> None:
    with StubJudge(lambda request: f"seen {request['messages'][0]['content']}") as stub:
        answer = ask(stub, "one two three")
        assert content(answer) == "seen one two three"
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 4, 7)
        [received] = stub.requests
        assert received.body["messages"][0]["content"] == "one two three"
        assert received.with_key is True
        assert "sk-planted" not in repr(vars(stub)) + repr(stub.requests)
        assert answer.model == "any"
        with openai.OpenAI(base_url=stub.url, api_key="none") as client:
            assert [model.id for model in client.models.list()] == [MODEL] == ["stub-judge"]
        assert stub.counts == {"ok": 1}


def test_the_verdict_fills_the_schema() -> None:
    prompt = f"Compare.\nReference answer: two polyps\n{delimited('I see Two  polyps, both sessile.')}\nAnswer."
    with StubJudge() as stub:
        verdict = json.loads(content(ask(stub, prompt, SCHEMA)))
        with pytest.raises(openai.BadRequestError, match="cannot fill the schema"):
            ask(stub, prompt, {"type": "number"})
        assert stub.counts == {"ok": 1, "bad_request": 1}
    assert verdict == {"reason": "stub: the text has the reference's words", "score": 5}


def test_an_error_of_decide_reaches_client_and_caller() -> None:
    def decide(request: Mapping[str, Any]) -> str:
        raise LookupError(request["model"])

    stub = StubJudge(decide)
    with pytest.raises(LookupError, match="any"), stub, pytest.raises(openai.InternalServerError):
        ask(stub, "x")
    assert stub.counts == {"decide_failed": 1}


def test_in_the_foreground_it_prints_its_address_and_stops_at_a_signal() -> None:
    command = [sys.executable, "-m", "medtasks.judge.stub", "--latency", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            assert httpx.post(f"{url}/chat/completions", json=body("x")).status_code == 200
            server.send_signal(signal.SIGTERM)
            assert server.communicate(timeout=60) == ("", "")
        finally:
            server.kill()
    assert server.returncode == 0

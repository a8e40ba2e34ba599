"""The stub judge: words of candidate and reference decide, nothing that the candidate asks for; and
its server.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion
from rubric_cases import TASKS, case

from medtasks.catalog.judge_prompt import aspects_of, judge_prompt, verdict_schema
from medtasks.catalog.neutral_text import delimited
from medtasks.judge.stub import StubJudge, rule_based
from medtasks.judge.verdict_parsing import parse_verdict
from medtasks.runs.verdict import Verdict


def request(prompt: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    asked = {"model": "any", "messages": [{"role": "user", "content": prompt}]}
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": schema},
    }
    return asked if schema is None else asked | {"response_format": wanted}


def ask(stub: StubJudge, text: str, schema: Mapping[str, Any] | None = None) -> ChatCompletion:
    """As openai's client meets the server."""
    with openai.OpenAI(base_url=stub.url, api_key="sk-planted", max_retries=0) as client:
        answer = client.chat.completions.create(**request(text, schema))
    assert isinstance(answer, ChatCompletion)
    return answer


def test_the_server_answers_and_counts_as_openai_s_client_expects() -> None:
    with StubJudge(lambda request: f"seen {request['messages'][0]['content']}") as stub:
        answer = ask(stub, "one two three")
        assert answer.choices[0].message.content == "seen one two three"
        assert answer.usage is not None
        assert (
            answer.usage.prompt_tokens,
            answer.usage.completion_tokens,
            answer.usage.total_tokens,
        ) == (3, 4, 7)
        assert [body["messages"][0]["content"] for body in stub.requests] == ["one two three"]
        assert "sk-planted" not in repr(vars(stub)) + repr(stub.requests)
    with StubJudge() as stub, pytest.raises(openai.InternalServerError):
        ask(stub, "x", {"type": "number"})


def test_in_the_foreground_it_prints_its_address_and_stops_at_a_signal() -> None:
    command = [sys.executable, "-m", "medtasks.judge.stub", "--latency", "0.01"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            assert httpx.post(f"{url}/chat/completions", json=request("x")).status_code == 200
            server.send_signal(signal.SIGTERM)
            assert server.communicate(timeout=60) == ("", "")
        finally:
            server.kill()
    assert server.returncode == 0


def scale(most: int) -> dict[str, Any]:
    return {"type": "integer", "enum": [*range(most + 1)]}


@pytest.mark.parametrize("name", TASKS)
def test_the_reference_gets_the_maximum_of_every_rubric_and_nothing_the_minimum(name: str) -> None:
    rubric, document = case(name)
    reference = document["target"]
    for response in (reference, f"**{reference.upper()}!**", "", "..."):
        prompt = judge_prompt(rubric, document, response)
        verdict = parse_verdict(
            rule_based(request(prompt, verdict_schema(rubric, document))), rubric, document
        )
        assert isinstance(verdict, Verdict)
        empty = not response.strip(".")
        reason = (
            "stub: the text has no words" if empty else "stub: the text has the reference's words"
        )
        aspects = aspects_of(rubric, document)
        assert verdict.scores == {
            one.name: one.minimum if empty else one.maximum for one in aspects
        }
        assert set(verdict.reasons.values()) == {reason}


def test_the_mark_is_token_f1_unless_the_reference_stands_in_the_text() -> None:
    marks = {
        "two sessile polyps": 100,
        "I see: <b>Two</b> *sessile*\n__polyps__, here.": 100,
        "two sessile polyps" + " more" * 40: 100,
        "two sessile polyps" + " more" * 41: 12,  # 2 · 3 / (44 + 3)
        "two sessile polypsis": 66,  # 2 · 2 / (3 + 3)
        "the two": 50,  # 2 · 1 / (1 + 3)
        "two two two two two": 25,  # a word counts as often as the reference has it: 2 · 1 / (5 + 3)
        "one flat lesion": 0,
    }
    for response, mark in marks.items():
        prompt = f"Reference answer: two sessile polyps\n\n{delimited(response)}\n"
        assert rule_based(request(prompt, scale(100))) == str(mark), response


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("One polyp can be counted.", "No instruments can be counted."),
        ("One polyp can be counted.", "Two polyp can be counted."),
        ("One polyp can be counted.", "One instrument can be counted."),
        ("One polyp can be counted.", "One polyp can not be counted."),
        ("One polyp can be counted.", "One polyp can be counted, and 3 instruments."),
        ("A polyp is visible.", "A polyp isn't visible."),
        ("No polyp is visible.", "A polyp is visible."),
        ("polyp", "no polyp"),
        ("2", "two polyps and one clip"),
    ],
)
def test_another_number_negation_or_noun_is_never_right(reference: str, response: str) -> None:
    prompt = f"Reference answer: {reference}\n\n{delimited(response)}\n"
    for most in (1, 2, 5):
        assert int(rule_based(request(prompt, scale(most)))) < most
    assert rule_based(request(prompt, scale(1))) == "0"
    assert rule_based(request(prompt)) == "incorrect"


def test_a_short_form_of_the_reference_is_right() -> None:
    prompt = f"Reference answer: One polyp can be counted.\n\n{delimited('one polyp counted')}\n"
    assert rule_based(request(prompt, scale(1))) == "1"


def test_numbers_are_the_same_in_words_and_digits() -> None:
    prompt = f"Reference answer: two polyps\n\n{delimited('I see 2 polyps.')}\n"
    assert rule_based(request(prompt, scale(100))) == "100"


def test_only_the_line_with_the_opening_lines_code_closes_the_candidate() -> None:
    opening, text, closing = delimited("polyp").split("\n")
    fake = f"=== END CANDIDATE TEXT {'0123456789abcdef' * 2} ==="
    block = "\n".join([opening, "an idea", fake, text, closing])
    assert rule_based(request(f"Reference answer: polyp\n{block}", scale(1))) == "1"


def test_a_repair_request_is_judged_by_the_first_prompt_also_beside_images() -> None:
    rubric, document = case("med_cmr_open")
    text, schema = judge_prompt(rubric, document, document["target"]), scale(5)
    parts = [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": text}]
    more = [{"role": "assistant", "content": "hm"}, {"role": "user", "content": "Judge again."}]
    asked = request(text, schema) | {"messages": [{"role": "user", "content": parts}, *more]}
    assert rule_based(asked) == rule_based(request(text, schema)) == "5"
    assert rule_based(request(text)) == "correct"

"""Mutated replies of a judge's endpoint: each is a verdict as it states it, or has a reason why it
is none.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from mutations import mutated

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric_files import load_rubric
from medtasks.judge.endpoint import Endpoint
from medtasks.judge.json_in_text import Invalid
from medtasks.judge.reply import Ending, FailedAttempt, JudgeAnswer
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.verdict_parsing import parse_verdict
from medtasks.runs.verdict import Verdict

RUBRIC = load_rubric("med_cmr_open")
ASPECTS = aspects_of(RUBRIC, {})
VERDICT = {
    aspect.name: {"reason": r"It is \geq 5 mm, {so} to say.", "score": aspect.maximum}
    for aspect in ASPECTS
}
ANSWERS = (
    json.dumps(VERDICT),
    f"<think>Hm.</think>\n```json\n{json.dumps(VERDICT, indent=1)}\n```",
    json.dumps(VERDICT).replace("\\\\", "\\")[:-1] + ",}",
    json.dumps({name: entry["score"] for name, entry in VERDICT.items()}),
    f"Draft: {json.dumps(VERDICT)} Final: {json.dumps(VERDICT)}",
)
MESSAGES: tuple[dict[str, Any], ...] = (
    {
        "choices": [{"message": {"content": ""}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3},
    },
    {
        "choices": [{"message": {"content": None, "reasoning": "x"}, "finish_reason": "length"}],
        "usage": None,
    },
    {"choices": [{"message": {"content": [{"type": "text", "text": "x"}], "refusal": "no"}}]},
    {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}},
    {"error": {"message": "no", "code": "content_filter", "innererror": {"code": "x"}}},
)
HEADERS = (
    {},
    {"Retry-After": "Sat, 28 Nov 2026 12:00:01 GMT"},
    {"Retry-After": "1e400"},
    {"retry-after-ms": "-1"},
)


def replies() -> list[bytes]:
    bodies = [json.dumps(message) for message in MESSAGES]
    for answer in ANSWERS:
        completion = {"choices": [{"message": {"content": answer}, "finish_reason": "stop"}]}
        bodies.append(json.dumps(completion))
    return [body.encode() for body in bodies]


@pytest.mark.parametrize("seed", range(6))
def test_no_reply_breaks_the_reader(seed: int) -> None:
    draw = random.Random(seed)
    endpoint = Endpoint(JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge"))
    for _ in range(100):
        body = mutated(draw.choice(replies()), draw).decode("utf-8", "replace")
        outcome = endpoint._outcome(
            draw.choice((200, 200, 200, 400, 429, 500, 302)), draw.choice(HEADERS), body
        )
        if isinstance(outcome, FailedAttempt):
            assert outcome.reason
            continue
        assert isinstance(outcome, JudgeAnswer)
        reading = parse_verdict(outcome.text, RUBRIC, {}, was_cut=outcome.ending is Ending.CUT)
        assert str(reading) if isinstance(reading, Invalid) else reading.scores


@pytest.mark.parametrize("seed", range(6))
def test_no_mutation_of_an_answer_makes_another_verdict_of_what_it_states(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(100):
        answer = mutated(draw.choice(ANSWERS).encode(), draw).decode("utf-8", "replace")
        reading = parse_verdict(answer, RUBRIC, {})
        if isinstance(reading, Invalid):
            assert str(reading)
            continue
        assert isinstance(reading, Verdict)
        assert all(reading.scores[aspect.name] in aspect.scale for aspect in ASPECTS)
        stated = _stated(answer)
        assert (
            stated is None
            or {name: int(float(score)) for name, score in stated.items()} == reading.scores
        )


def _stated(answer: str) -> dict[str, Any] | None:
    """The scores of an answer that is one JSON object, as another parser reads them."""
    try:
        document = json.loads(answer)
        return {aspect.name: _score(document[aspect.name]) for aspect in ASPECTS}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _score(entry: Any) -> Any:
    return entry["score"] if isinstance(entry, dict) else entry

"""Closed models: what is sent to them, which responses count as answers, and what is asked again."""

from __future__ import annotations

import hashlib
import io
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from closed import BACK_ENDS, KEYS, Script, ask, letter, require_package
from closed_models import (
    COMPLETIONS,
    RESPONSES,
    Answer,
    Closed,
    ClosedModels,
    Outcome,
    Problem,
    Question,
)

from medtasks.benchmarks.documents import doc_to_visual, task_documents
from medtasks.core.errors import MedtasksError

pytestmark = pytest.mark.slow

TASK = "med_cmr_mcq_ltg"
FEW = "retry_backoff_s=0,max_retries=3"


@pytest.fixture(params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> str:
    require_package(request.param)
    return str(request.param)


def digest(picture: Any) -> str:
    """The SHA-256 of a picture as PNG."""
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return hashlib.sha256(file.getvalue()).hexdigest()


KINDS = ["mi_cxr_icr", "medstreambench_future_streaming", "mi_cxr_stagewise_icr"]


def test_pictures_arrive_unchanged_in_their_order_and_every_prompt_is_sent_once(
    back_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ClosedModels(letter) as server:
        run = ask(back_end, server, KINDS, tmp_path, monkeypatch, limit=2)
    for task in KINDS:
        assert run.manifest["tasks"][task]["failed"] == {}
    keys = [question.key for question in server.asked]
    assert len(keys) == len(set(keys))
    timelines = [doc_to_visual(document) for document in task_documents(KINDS[0])[:2]]
    assert [len(timeline) for timeline in timelines] == [5, 5]
    sent = {question.pictures for question in server.asked}
    assert {tuple(map(digest, timeline)) for timeline in timelines} <= sent
    for question in server.asked:
        has_key = any(KEYS["OPENAI_API_KEY"] in value for value in question.headers.values())
        assert has_key == (question.protocol in (COMPLETIONS, RESPONSES))


BLOCKED = ["refused", "prompt"]
RETRIED = [
    [Problem(429, "slow down", {"Retry-After": "0"}), Answer("A")],
    [Problem(429, "slow down"), Problem(529, "overloaded"), Answer("A")],
    [Closed(), Problem(500), Answer("A")],
]
LOST: list[list[Outcome]] = [[Problem(503, "down")], [Problem(400, "too many pictures")]]


def outcomes() -> dict[str, list[Outcome]]:
    """What becomes of the samples of `TASK`, by their questions; the last ones are answered."""
    plan: list[list[Outcome]] = [
        [Answer("A", ending="length")],
        [Answer("", ending="length", thoughts="hm", reasoning=30, output_tokens=0)],
        [Answer("A", thoughts="B, or C?", reasoning=30)],
        *([Answer("A", ending=ending)] for ending in BLOCKED),
        *RETRIED,
        *LOST,
    ]
    questions = [document["question"] for document in task_documents(TASK)]
    assert len(questions) == len(set(questions)) > len(plan)
    plan += [[Answer("A")]] * (len(questions) - len(plan))
    return dict(zip(questions, plan, strict=True))


def test_what_is_blocked_or_lost_has_failed_and_everything_else_counts(
    back_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(outcomes())
    with ClosedModels(script) as server:
        run = ask(
            back_end, server, [TASK], tmp_path, monkeypatch, arguments=f"{FEW},num_concurrent=4"
        )
    samples = {sample["sample_id"]: sample for sample in run.samples(TASK)}
    ordered = [samples[document["sample_id"]] for document in task_documents(TASK)]
    cut, exhausted, thoughtful, *blocked = ordered[:5]
    lost = ordered[8:10]
    answered = len(ordered) - len(blocked) - len(lost)
    assert all(sample["status"] == "failed" for sample in [*blocked, *lost])
    assert sum(sample["status"] == "failed" for sample in ordered) == len(blocked) + len(lost)
    assert run.manifest["tasks"][TASK]["finish"] == {"length": 2, "stop": answered - 2}
    assert cut["responses"] == thoughtful["responses"] == ["A"]
    assert exhausted["responses"] == [""]
    for sample, words in zip(lost, ("down", "too many pictures"), strict=True):
        (reason,) = sample["failed"]
        assert words in reason
    usage = run.manifest["usage"]
    assert usage["samples"] == answered
    assert usage["prompt_tokens"] == 100 * answered
    assert usage["output_tokens"] == 2 * (answered - 1) + 60


def test_the_same_command_asks_only_what_has_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [document["question"] for document in task_documents(TASK)]
    lost = set(questions[::4])
    plan = {text: [Problem(500) if text in lost else Answer("A")] for text in questions}
    with ClosedModels(Script(plan)) as server:
        partial = ask("openai", server, [TASK], tmp_path, monkeypatch, arguments=FEW)
        assert partial.manifest["tasks"][TASK]["answered"] == len(questions) - len(lost)
        assert len(server.asked) == len(questions) + 2 * len(lost)
        again = Script({text: [Answer("A")] for text in lost})
        monkeypatch.setattr(server, "_decide", again)
        whole = ask("openai", server, [TASK], tmp_path, monkeypatch, arguments=FEW)
    assert again.attempts == Counter(lost)
    assert whole.manifest["tasks"][TASK]["failed"] == {}
    assert whole.manifest["usage"]["prompt_tokens"] == 100 * len(questions)


def test_an_endpoint_that_is_lost_ends_the_run_and_no_answered_request_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(task_documents(TASK))
    is_lost = False

    def decide(question: Question) -> Outcome:
        nonlocal is_lost
        is_lost = is_lost or len(server.answered) >= 3
        return Closed() if is_lost else letter(question)

    arguments = f"{FEW},num_concurrent=2"
    with ClosedModels(decide) as server:
        with pytest.raises(MedtasksError, match=r"openai: 4 requests in a row did not reach the"):
            ask("openai", server, [TASK], tmp_path, monkeypatch, arguments=arguments)
        assert 3 <= len(server.answered) < count
        monkeypatch.setattr(server, "_decide", letter)
        run = ask("openai", server, [TASK], tmp_path, monkeypatch, arguments=arguments)
        answers = Counter(question.key for question in server.answered)
    assert (len(answers), set(answers.values())) == (count, {1})
    assert run.manifest["tasks"][TASK]["failed"] == {}


def test_the_wait_that_an_endpoint_asks_for_is_kept_unless_it_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [document["question"] for document in task_documents(TASK)[:3]]
    limited = Problem(429, "slow down", {"Retry-After": "1"})
    used_up = Problem(429, "daily limit", {"Retry-After": "3600"})
    script = Script(
        {questions[0]: [limited, Answer()], questions[1]: [used_up], questions[2]: [Answer()]}
    )
    arrivals: dict[str, list[float]] = {}

    def decide(question: Question) -> Outcome:
        arrivals.setdefault(question.key, []).append(time.monotonic())
        return script(question)

    with ClosedModels(decide) as server:
        run = ask("openai", server, [TASK], tmp_path, monkeypatch, limit=3)
    (repeated,) = (times for times in arrivals.values() if len(times) > 1)
    assert repeated[1] - repeated[0] >= 1
    assert script.attempts == {questions[0]: 2, questions[1]: 1, questions[2]: 1}
    (reason,) = run.manifest["tasks"][TASK]["failed"]
    assert reason.startswith("status")
    assert "daily limit (the endpoint asks to wait" in reason


def test_a_wrong_key_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = r"refused the first 4 requests .*no such key"
    with (
        ClosedModels(lambda _: Problem(401, "no such key")) as server,
        pytest.raises(MedtasksError, match=words),
    ):
        ask("openai", server, [TASK], tmp_path, monkeypatch, arguments="num_concurrent=1")
    assert len(server.asked) == 4


def test_claude_gets_the_tokens_and_pictures_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_package("claude")
    limit = "max_new_tokens=6000"
    with ClosedModels(letter) as server:
        run = ask("claude", server, [TASK], tmp_path, monkeypatch, limit=1, gen_kwargs=limit)
    (question,) = server.asked
    assert question.body["max_tokens"] == 6000
    assert not {"system", "top_p"} & question.body.keys()
    assert {"image/png"} == {
        part["source"]["media_type"]
        for part in question.body["messages"][0]["content"]
        if part["type"] == "image"
    }
    sends_temperature = "temperature" in question.body
    assert run.manifest["model"].get("temperature") == (None if sends_temperature else "not sent")


def test_after_a_run_of_ours_lmms_eval_asks_claude_for_other_tasks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_package("claude")
    from lmms_eval.models.simple import claude

    with ClosedModels(letter) as server:
        ask("claude", server, [TASK], tmp_path, monkeypatch, limit=1)
        message = claude.anthropic.Anthropic().messages.create(
            model="m", max_tokens=8, messages=[{"role": "user", "content": "?"}]
        )
    assert message.content[0].text == letter(server.asked[-1]).text


TROUBLES = str(Path(__file__).parents[2] / "performance" / "closed_kills.py")


def test_kills_and_outages_lose_nothing_and_ask_nothing_again(python: Any) -> None:
    done = python(TROUBLES, "--troubles", "3", "--only", "openai")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.startswith("3 troubles, seed 0\n")

"""Closed models: what is sent to them, which responses count as answers, and what is asked again."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from closed import BACK_ENDS, Script, ask, letter, require_package
from closed_models import Answer, Closed, ClosedModels, Outcome, Problem

from medtasks.benchmarks.documents import doc_to_visual, task_documents

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

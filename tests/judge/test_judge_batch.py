"""Judging through a Batch API, over real HTTP: the verdicts of the chat API, no request paid for
twice.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from batch_judge import BatchJudge
from judged_run import awaiting_run
from test_judge_pipeline import RUBRIC, broken_once, documents, judge, questions

from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.files import short_hash
from medtasks.judge import batch, openai_client
from medtasks.judge.client import JudgeClient
from medtasks.judge.pipeline import judge_questions
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.settings_sources import configured_judges
from medtasks.judge.store import VerdictStore
from medtasks.judge.stub import StubJudge, rule_based


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "QUIET", 0.2)
    monkeypatch.setattr(batch, "POLLS", (0.01, 0.05))


judged = functools.partial(judge, batch=True)


def records(stub: BatchJudge) -> list[Path]:
    return sorted((cache_root() / "batches" / short_hash(stub.url)).glob("*.json"))


def test_verdicts_are_those_of_the_chat_api(tmp_path: Path) -> None:
    with BatchJudge() as stub:
        by_batch = judged(stub, tmp_path / "batch")
        assert records(stub) == []
        by_chat = judge(stub, tmp_path / "chat")
    assert by_batch.by_question == by_chat.by_question
    assert len(stub.batches) == 1
    assert len(stub.lines(0)) == len(documents())
    assert sorted(map(str, stub.requests)) == sorted(
        str(line["body"]) for line in stub.lines(0)
    )  # the same requests
    assert {line["url"] for line in stub.lines(0)} == {"/v1/chat/completions"}
    assert (by_batch.spent.answered, by_batch.spent.tokens) == (
        by_chat.spent.answered,
        by_chat.spent.tokens,
    )


def test_a_command_that_is_repeated_waits_for_the_same_batch(tmp_path: Path) -> None:
    async def stopped_early(stub: BatchJudge) -> None:
        with VerdictStore(tmp_path / "v") as opened:
            client = JudgeClient(JudgeSettings(base_url=stub.url, model="stub", batch=True))
            work = asyncio.ensure_future(judge_questions(questions(), RUBRIC, client, opened))
            while not stub.batches:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    with BatchJudge() as stub:
        stub.held = True
        asyncio.run(stopped_early(stub))
        assert len(records(stub)) == 1
        stub.held = False
        result = judged(stub, tmp_path / "v")
        assert len(result.valid) == len(documents())
        assert len(stub.batches) == 1
        assert records(stub) == []
        assert judged(stub, tmp_path / "v").spent.requests == 0
    assert len(stub.batches) == 1


@pytest.mark.parametrize("before", ["stopped before creation", "created and not recorded", "gone"])
def test_requests_that_an_earlier_process_uploaded_are_not_uploaded_again(
    before: str, tmp_path: Path
) -> None:
    with BatchJudge() as stub:
        stub.refuse_creation = True
        refused = judged(stub, tmp_path / "v")
        assert "no batches for you" in next(iter(refused.unjudged.values()))
        (record,) = records(stub)
        stub.refuse_creation = False
        if before == "created and not recorded":
            stub.batches["batch-0"] = {
                "id": "batch-0", "object": "batch", "created_at": 0, "status": "in_progress", "looks": 0,
                "input_file_id": next(iter(stub.files)), "endpoint": "/v1/chat/completions", "completion_window": "24h",
            }  # fmt: skip
        elif before == "gone":
            record.write_text(record.read_text().replace('"file"', '"batch":"batch-99","file"'))
        assert len(judged(stub, tmp_path / "v").valid) == len(documents())
        assert list(stub.batches) == ["batch-0"]
        uploads = sum(
            b"custom_id" in content and b"messages" in content for content in stub.files.values()
        )
        assert uploads == (2 if before == "gone" else 1)
        assert records(stub) == []


@pytest.mark.parametrize("fault", ["expired", "some fail", "lost line"])
def test_requests_without_a_result_go_into_another_batch(fault: str, tmp_path: Path) -> None:
    with BatchJudge(faults={0: fault}) as stub:
        result = judged(stub, tmp_path / "v")
        first = {line["custom_id"] for line in stub.lines(0)}
        second = {line["custom_id"] for line in stub.lines(1)}
    assert len(result.valid) == len(documents())
    assert len(stub.batches) == 2
    assert second < first
    assert second == {
        line["custom_id"] for line in stub.lines(0)[::3]
    }  # the stub spoils every third line


def test_a_batch_that_is_refused_leaves_its_requests_unjudged(tmp_path: Path) -> None:
    with BatchJudge(faults={0: "refused", 1: "refused"}) as stub:
        result = judged(stub, tmp_path / "v")
        assert set(result.unjudged.values()) == {"batch refused: the model has no batches"}
        assert len(stub.batches) == 1
        assert len(judged(stub, tmp_path / "v").unjudged) == len(
            documents()
        )  # nothing was stored: asked again
    with StubJudge() as without:
        (reason,) = set(judged(without, tmp_path / "v").unjudged.values())
    assert reason.startswith("http 404")


def test_an_invalid_answer_gets_its_repair_in_another_batch(tmp_path: Path) -> None:
    with BatchJudge(broken_once) as stub:
        result = judged(stub, tmp_path / "v")
    assert (result.repaired, len(stub.batches)) == (len(documents()), 2)


def test_a_wait_ends_if_the_server_stays_away_but_not_if_it_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "UNREACHED", 2)
    with BatchJudge() as stub:
        stub.away = 10  # openai's client tries each look six times
        assert len(judged(stub, tmp_path / "v").valid) == len(documents())
        assert (stub.away, len(stub.batches)) == (0, 1)
        stub.away = 10**6
        assert {one[:8] for one in judged(stub, tmp_path / "w").unjudged.values()} == {"http 503"}
        stub.away = 0
        assert len(judged(stub, tmp_path / "w").valid) == len(documents())
        assert len(stub.batches) == 2


def test_the_budget_limits_the_requests_of_a_batch_and_a_line_separator_ends_no_line(
    tmp_path: Path,
) -> None:
    with BatchJudge(lambda request: f"\u2028{rule_based(request)}") as stub:
        result = judged(stub, tmp_path / "v", budget=Budget(max_requests=3))
        assert len(stub.lines(0)) == 3
    assert len(result.valid) == 3
    assert set(result.unjudged.values()) == {"budget"}


def test_several_batches_if_one_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "LARGEST", 20_000)
    with BatchJudge() as stub:
        assert len(judged(stub, tmp_path / "v").valid) == len(documents())
        sizes = [len(stub.files[one["input_file_id"]]) for one in stub.batches.values()]
    assert len(sizes) > 1
    assert max(sizes) <= 20_000


def test_a_result_that_is_too_long_is_skipped_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "LARGEST_REPLY", 20_000)
    long = documents()[0]["target"]

    def decide(request: Mapping[str, Any]) -> str:
        is_long = long in request["messages"][0]["content"]
        return rule_based(request) + "\n" * 100_000 if is_long else rule_based(request)

    with BatchJudge(decide) as stub:
        result = judged(stub, tmp_path / "v", retries=0)
    (reason,) = set(result.unjudged.values())
    assert reason == "batch completed: it has no result for this request"
    assert 0 < len(result.unjudged) < len(documents())


def test_a_reply_without_end_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_client, "LARGEST_REPLY", 20_000)
    with BatchJudge() as stub:
        stub.padding = 100_000
        result = judged(stub, tmp_path / "v", retries=0)
    (reason,) = set(result.unjudged.values())
    assert reason == "bad reply: more than 4 MB, of which nothing is kept; lower `max_tokens`"


def test_a_run_does_not_wait_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_JUDGE", "model=m,base_url=http://127.0.0.1:9/v1,batch=true")
    with pytest.raises(UsageError, match="medtasks judge"):
        configured_judges()


@pytest.mark.slow
def test_a_killed_command_is_continued(tmp_path: Path) -> None:
    folder = awaiting_run("med_cmr_open_sod", tmp_path / "run")
    with BatchJudge() as stub:
        stub.held = True
        command = [sys.executable, "-m", "medtasks", "judge", str(folder), "--store", str(tmp_path / "v"),
                   "--judge", f"model=stub-judge,base_url={stub.url},batch=true"]  # fmt: skip
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not any('"batch"' in record.read_text(encoding="utf-8") for record in records(stub)):
            assert first.poll() is None
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        first.wait()
        stub.held = False
        second = subprocess.run(command, capture_output=True, text=True, check=True)
        assert len(stub.batches) == 1
    assert "(100.0%)" in second.stdout

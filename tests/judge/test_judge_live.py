"""Judging beside inference fills the store and never gets in the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from rubric_cases import case

from medtasks.judge.config import JudgeConfig
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.store import VerdictStore
from medtasks.judge.stub import StubJudge
from medtasks.results.live import LiveJudging


def document() -> dict[str, Any]:
    return case("med_cmr_open")[1]


def config(url: str, path: Path, **more: Any) -> JudgeConfig:
    return JudgeConfig(judges={"j": JudgeSettings(base_url=url, model="stub-judge", retries=0, **more)}, store=path)


def test_answers_are_judged_as_they_come(tmp_path: Path) -> None:
    with StubJudge() as stub:
        live = LiveJudging(config(stub.url, tmp_path / "v"))
        for number in range(5):
            live.take("med_cmr_open_sod", document(), f"So. Final answer: {number}")
        live.finish(60)
        assert stub.counts["ok"] == 5
    assert live.reason is None
    with VerdictStore(tmp_path / "v") as store:
        assert len(store) == 5


def test_tasks_that_nobody_judges_are_left_alone(tmp_path: Path) -> None:
    with StubJudge() as stub:
        live = LiveJudging(config(stub.url, tmp_path / "v"))
        live.take("mi_cxr_tel_single", {}, "A")
        live.take("a_task_of_the_harness", {}, "A")
        live.finish(60)
        assert stub.requests == []


def test_a_judge_that_fails_stops_it_and_nothing_else(tmp_path: Path) -> None:
    live = LiveJudging(config("http://127.0.0.1:9/v1", tmp_path / "v"))
    live.take("med_cmr_open_sod", document(), "So. Final answer: 1")
    live.finish(60)
    assert live.reason is not None
    assert live.reason.startswith("j at http://127.0.0.1:9/v1: connection: ")
    live.take("med_cmr_open_sod", document(), "So. Final answer: 2")
    live.finish(60)


def test_a_document_that_lacks_a_field_stops_it_and_nothing_else(tmp_path: Path) -> None:
    with StubJudge() as stub:
        live = LiveJudging(config(stub.url, tmp_path / "v"))
        live.take("medstreambench_present", {"sample_id": "x"}, "yes")
        live.finish(60)
    assert live.reason is not None


def test_a_budget_is_left_to_the_judging_afterwards(tmp_path: Path) -> None:
    with StubJudge() as stub:
        live = LiveJudging(config(stub.url, tmp_path / "v", budget=Budget(max_requests=9)))
        live.take("med_cmr_open_sod", document(), "So. Final answer: 1")
        live.finish(60)
        assert stub.requests == []


FAILING = """
import sys, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from test_judge_live import LiveJudging, VerdictStore, config, document
live = LiveJudging(config(sys.argv[1], Path(sys.argv[2])))
live.take("med_cmr_open_sod", document(), "So. Final answer: 1")
with VerdictStore(Path(sys.argv[2])) as store:
    while not len(store):
        time.sleep(0.1)
time.sleep(0.5)  # it waits for the next answer now
raise RuntimeError("out of memory")
"""


def test_inference_that_fails_ends_the_process(tmp_path: Path) -> None:
    with StubJudge() as stub:
        arguments = [stub.url, str(tmp_path / "v"), str(Path(__file__).parent)]
        done = subprocess.run(
            [sys.executable, "-c", FAILING, *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert "out of memory" in done.stderr

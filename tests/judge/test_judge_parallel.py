"""Judging by several processes gives what one gives, asks nothing twice, and leaves nobody behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rubric_cases import case

from medtasks.errors import UsageError
from medtasks.judge.adjudicate import adjudicate
from medtasks.judge.client import JudgeClient
from medtasks.judge.images import ImageSource
from medtasks.judge.judgement import Adjudication, Question
from medtasks.judge.parallel import adjudicate_in_processes, useful_processes
from medtasks.judge.rubric import load_rubric
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.store import VerdictStore
from medtasks.judge.stub import Faults, StubJudge

RUBRIC = load_rubric("med_cmr_open")


def questions(number: int) -> list[Question]:
    """Every answer is given twice, by samples that differ in nothing else that the judge sees."""
    document = case("med_cmr_open")[1]
    return [
        Question(f"s{place}", {**document, "sample_id": f"s{place}"}, f"answer {place // 2}") for place in range(number)
    ]


def settings(stub: StubJudge, **more: Any) -> JudgeSettings:
    return JudgeSettings(**{"base_url": stub.url, "model": "stub-judge", "concurrency": 8, "backoff": 0.01, **more})


def in_two(asked: list[Question], how: JudgeSettings, path: Path, progress: Any = None) -> Adjudication:
    with VerdictStore(path) as store:
        return asyncio.run(adjudicate_in_processes(asked, RUBRIC, how, store, 2, progress))


def test_two_processes_judge_as_one(tmp_path: Path) -> None:
    asked = questions(500)
    seen: list[tuple[int, int]] = []
    # so slow that the worker has started before this process has begun with all
    with StubJudge(faults=Faults.mixed(0.1), latency=0.05) as stub:
        found = in_two(asked, settings(stub), tmp_path / "two", lambda done, total, _: seen.append((done, total)))
        prompts = [json.dumps(one.body["messages"]) for one in stub.requests if one.outcome == "ok"]
    assert list(found.judgements) == [one.sample_id for one in asked]
    assert len(prompts) == len(set(prompts))
    assert seen[-1] == (500, 500)
    assert found.spent.answered >= 250
    with StubJudge() as stub, VerdictStore(tmp_path / "one") as store:
        alone = asyncio.run(adjudicate(asked, RUBRIC, JudgeClient(settings(stub)), store))
    assert {name: alone.verdicts[name] for name in found.verdicts} == found.verdicts
    assert found.verdicts.keys() | found.unjudged.keys() == alone.verdicts.keys()


def test_all_places_are_used_by_whoever_has_questions_and_never_more(tmp_path: Path) -> None:
    with StubJudge(latency=0.05) as stub:
        assert in_two(questions(600), settings(stub), tmp_path / "two").coverage == 1
        assert stub.peak == 8
        connections = stub.connections
    assert connections >= 12  # this process had all places at first, and the worker some or all of them


def test_what_a_worker_cannot_do_is_said_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "no key\nat all")
    with StubJudge() as stub, pytest.raises(UsageError, match="PLANTED holds no API key"):
        in_two(questions(40), settings(stub, api_key_env="PLANTED"), tmp_path / "store")


def test_it_pays_off_for_many_questions_without_a_budget_or_images() -> None:
    many = questions(2000)
    plain = JudgeSettings(base_url="http://127.0.0.1:9/v1", model="m")
    cores = len(os.sched_getaffinity(0))
    assert useful_processes(many, plain) == min(cores, 2)
    assert useful_processes(many[:1999], plain) == 1
    assert useful_processes(many, plain.model_copy(update={"concurrency": 31})) == 1
    assert useful_processes(many, plain.model_copy(update={"budget": Budget(max_requests=9)})) == 1
    shown = [*many[:-1], Question("x", {}, "", (ImageSource("k", lambda: b""),))]
    assert useful_processes(shown, plain) == 1


LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from test_judge_parallel import in_two, questions
from medtasks.judge.settings import JudgeSettings
in_two(questions(4000), JudgeSettings(base_url=sys.argv[1], model="m", concurrency=4), Path(sys.argv[2]))
"""


@LINUX
def test_no_worker_outlives_a_killed_run(tmp_path: Path) -> None:
    """Also one that waits for answers that do not come: the next run may ask what it would ask again."""
    with StubJudge(latency=300) as stub:
        arguments = [stub.url, str(tmp_path / "store"), str(Path(__file__).parent)]
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])
        while len(stub.requests) < 4:  # the concurrency of both processes together
            time.sleep(0.05)
            assert process.poll() is None
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(workers) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        end = time.monotonic() + 20
        while _lives(workers[0]) and time.monotonic() < end:
            time.sleep(0.1)
        assert not _lives(workers[0])


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

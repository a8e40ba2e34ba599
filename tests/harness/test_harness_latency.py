"""The seconds of every request: those of a server that knows them, of all parts of a run, and of
rounds; runs without seconds say so.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
from failing_server import FailingServer, completion, error
from foreign_backend import Backend, evaluate
from lmms_eval.api.instance import GenerationResult, TokenCounts
from medtasks.leaderboard.intake.remove_rows import remove_rows
from runs import Run, baseline, vlm
from typer.testing import CliRunner

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.cli.app import app
from medtasks.harness import run_tasks
from medtasks.runs.times import RequestTime, read_times
from medtasks.runs.unfinished import read_work

TASK = "med_cmr_mcq_ltg"
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")


class SlowServer(FailingServer):
    """Answers each text after a delay of its own, and keeps the seconds that it took."""

    def __init__(self, least: float, *, fails_first: bool = False) -> None:
        self._least = least
        self.seconds: dict[str, float] = {}
        self._begins: dict[str, float] = {}
        self._lock = threading.Lock()
        self._fails_first = fails_first
        super().__init__(self._answer_late)

    def _answer_late(self, text: str) -> Any:
        began = time.monotonic()
        with self._lock:
            is_first = text not in self._begins
            self._begins.setdefault(text, began)
        time.sleep(self._least * (1 + zlib.crc32(text.encode()) % 5 / 8))
        if is_first and self._fails_first:
            return error(500, "overloaded")
        self.seconds[text] = time.monotonic() - self._begins[text]
        return completion("A", tokens=7)


def seconds_of_server(server: SlowServer, run: Run) -> dict[str, float]:
    """What the server took for each sample, whose prompt is in the text that it got."""
    by_sample: dict[str, float] = {}
    for sample in run.samples(TASK):
        (seconds,) = (
            seconds for text, seconds in server.seconds.items() if sample["prompt"] in text
        )
        by_sample[sample["sample_id"]] = seconds
    return by_sample


def times_of(run: Run) -> dict[str, RequestTime]:
    """The times of a run's only task by sample."""
    (times,) = read_times(run.folder).values()
    return {time.sample_id: time for time in times}


def latency(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((run.folder / "latency.json").read_text())["tasks"][TASK]
    return found


@pytest.mark.parametrize(
    ("model", "several"), [("async_openai", "num_cpus=4"), ("openai", "num_concurrent=4")]
)
def test_seconds_are_those_of_the_server(model: str, several: str, tmp_path: Path) -> None:
    # long: 5 % must be more than what a busy machine adds to most requests
    with SlowServer(2.5) as server:
        arguments = f"model_version=m,base_url={server.url},{several}"
        run = Run(run_tasks(model, arguments, [TASK], tmp_path, limit=8))
    expected = seconds_of_server(server, run)
    times = times_of(run)
    assert times.keys() == expected.keys()
    shares = sorted(times[name].seconds / seconds for name, seconds in expected.items())
    assert shares[0] > 1
    assert shares[len(shares) // 4] < 1.05
    of_run = latency(run)
    # one that waits for a slot would have twice the seconds
    assert of_run["median"]["value"] == pytest.approx(median_low(expected.values()), rel=0.2)
    assert of_run["measured"] == of_run["requests"] == len(expected)
    assert (of_run["batched"], of_run["in_flight"]) == (0, 4)
    whole = sum(time.seconds for time in times.values())
    assert of_run["hardware"] == {"unknown": len(expected)}
    assert of_run["output_tokens_per_second"]["value"] == pytest.approx(
        7 * len(times) / whole, rel=1e-4
    )


@pytest.mark.parametrize(("model", "tries"), [("async_openai", 4), ("openai", 4)])
def test_seconds_include_all_attempts_which_are_counted(
    model: str, tries: int, tmp_path: Path
) -> None:
    with SlowServer(0.2, fails_first=True) as server:
        arguments = f"model_version=m,base_url={server.url},num_cpus={tries},num_concurrent={tries}"
        run = Run(run_tasks(model, arguments, [TASK], tmp_path, limit=4))
    times = times_of(run)
    for name, seconds in seconds_of_server(server, run).items():
        assert times[name].seconds > seconds > 0.4
    assert {time.attempts for time in times.values()} == {2}


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from foreign_backend import Backend, evaluate
from test_harness_latency import TASK, late

def answer(document):
    if len(backend.asked) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return late(document)

backend = Backend(answer)
evaluate(backend, [TASK], Path(sys.argv[2]))
"""


def late(document: dict[str, Any]) -> GenerationResult:
    """An answer that takes longer for later documents."""
    time.sleep(0.01)
    return GenerationResult(document["target"], TokenCounts(output_tokens=3))


def test_a_killed_run_keeps_the_seconds_of_all_parts(python: Any, tmp_path: Path) -> None:
    killed = python("-c", _KILLED, str(Path(__file__).parent), str(tmp_path))
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    (unfinished,) = tmp_path.rglob("*_unfinished")
    documents = task_documents(TASK)
    before = {
        documents[answer.slot.doc_id]["sample_id"]: answer.reply.timing
        for answer in next(iter(read_work(unfinished).values()))
    }
    (open_run,) = medtasks.open(unfinished)
    assert open_run.run_latency.tasks[TASK].measured == len(before) == 4

    run = evaluate(Backend(late), [TASK], tmp_path)
    times = times_of(run)
    assert len(times) == len(documents)
    for name, timing in before.items():
        assert (times[name].seconds, times[name].sent) == (timing.seconds, timing.sent)
    assert all(time.seconds > 0.01 for time in times.values())
    assert latency(run)["measured"] == len(documents)


def test_failed_requests_have_no_seconds_and_are_counted(tmp_path: Path) -> None:
    lost = {document["sample_id"] for document in task_documents(TASK)[:2]}
    backend = Backend(lambda document: None if document["sample_id"] in lost else late(document))
    run = evaluate(backend, [TASK], tmp_path)
    assert {name for name, time in times_of(run).items() if time.failed} == lost
    assert latency(run)["without"] == {"failed": 2}


def test_batches_have_the_seconds_of_all_and_say_so(tmp_path: Path) -> None:
    backend = Backend(late)
    backend.batch_size = 4
    run = evaluate(backend, [TASK], tmp_path)
    times = times_of(run)
    batched = [time for time in times.values() if time.is_batched]
    assert {time.batch for time in batched} == {4}
    assert all(time.seconds > 0.04 for time in batched)
    of_run = latency(run)
    assert of_run["batched"] == len(batched) == len(times) // 4 * 4
    by_batch = {time.sent: time.seconds for time in times.values()}
    assert of_run["output_tokens_per_second"]["value"] == pytest.approx(
        3 * len(times) / sum(by_batch.values()), rel=1e-4
    )


def test_every_round_of_a_request_has_its_seconds(tmp_path: Path) -> None:
    def answer(_: Any) -> str:
        time.sleep(0.005)
        return "A"

    run = medtasks.evaluate(answer, "mi_cxr_stagewise_icr", output_path=tmp_path, limit=3)
    (times,) = read_times(Path(run.name)).values()
    rounds: dict[str, list[int | None]] = {}
    for request in times:
        rounds.setdefault(request.sample_id, []).append(request.round)
        assert request.seconds >= 0.005
    assert list(rounds.values()) == [[0, 1]] * 3


def test_our_vlm_tells_its_hardware_and_when_the_first_token_came(tmp_path: Path) -> None:
    run = vlm([TASK], tmp_path, tokens=4, batch_size=4)
    for request in times_of(run).values():
        assert 0 < request.first_token < request.seconds
        assert request.hardware is not None
    of_run = latency(run)
    assert of_run["first_tokens"] == of_run["measured"] == of_run["requests"]
    assert of_run["batched"] > 0


def test_a_run_without_a_model_says_why_it_has_no_seconds(tmp_path: Path) -> None:
    run = baseline("uniform", [TASK], tmp_path)
    assert not (run.folder / "times").exists()
    assert not (run.folder / "latency.json").exists()
    (opened,) = medtasks.open(run.folder)
    (row,) = opened.latency().to_pandas().to_dict("records")
    assert row["reason"] == "no seconds: the back-end runs no model"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with seconds."""
    return evaluate(Backend(late), [TASK], tmp_path_factory.mktemp("measured"))


def test_scoring_shows_the_latency_and_writes_it_again(measured: Run, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["score", str(measured.folder), "--out", str(tmp_path / "x")])
    assert result.exit_code == 0, result.output
    assert "Latency in seconds" in result.output
    assert "at most 1 request at once" in result.output
    for name in ("latency.json", f"times/{TASK}.jsonl"):
        assert (tmp_path / "x" / name).read_bytes() == (measured.folder / name).read_bytes()


def test_python_has_the_figures_of_the_file(measured: Run) -> None:
    (opened,) = medtasks.open(measured.folder)
    (row,) = opened.latency().to_pandas().to_dict("records")
    of_run = latency(measured)
    assert (row["median"], row["requests"]) == (of_run["median"]["value"], of_run["requests"])
    assert [row["median_low"], row["median_high"]] == of_run["median"]["interval"]


def test_damaged_times_change_no_score(measured: Run, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged_medtasks"
    shutil.copytree(measured.folder, damaged)
    (damaged / "times" / f"{TASK}.jsonl").write_text("{")
    whole = json.loads(CliRunner().invoke(app, ["score", str(measured.folder), "--json"]).stdout)
    result = CliRunner().invoke(app, ["score", str(damaged), "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["tasks"] == whole["tasks"]
    assert content["notes"][-1].startswith("no latency: ")
    assert f"{TASK}.jsonl, line 1: " in content["notes"][-1]


def test_a_stripped_run_keeps_the_seconds(measured: Run, tmp_path: Path) -> None:
    stripped = remove_rows(measured.folder, tmp_path / "stripped_medtasks")
    assert read_times(stripped) == read_times(measured.folder)

"""The seconds of every request: those of a server that knows them, of all parts of a run, and of
rounds; runs without seconds say so.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from failing_server import FailingServer, completion, error
from runs import Run

from medtasks.harness import run_tasks
from medtasks.runs.times import RequestTime, read_times

TASK = "med_cmr_mcq_ltg"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")


class SlowServer(FailingServer):
    """Answers each text after a delay of its own, and keeps the seconds that it took."""

    def __init__(self, *, fails_first: bool = False) -> None:
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
        time.sleep(0.4 + zlib.crc32(text.encode()) % 5 / 10)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "several"), [("async_openai", "num_cpus=4"), ("openai", "num_concurrent=4")]
)
def test_seconds_are_those_of_the_server(model: str, several: str, tmp_path: Path) -> None:
    with SlowServer() as server:
        arguments = f"model_version=m,base_url={server.url},{several}"
        run = Run(run_tasks(model, arguments, [TASK], tmp_path))
    expected = seconds_of_server(server, run)
    times = times_of(run)
    assert times.keys() == expected.keys()
    assert all(times[name].seconds > seconds for name, seconds in expected.items())
    of_run = latency(run)
    assert of_run["median"]["value"] == pytest.approx(median(expected.values()), rel=0.05)
    assert of_run["measured"] == of_run["requests"] == len(expected)
    assert (of_run["batched"], of_run["in_flight"]) == (0, 4)
    whole = sum(time.seconds for time in times.values())
    assert of_run["output_tokens_per_second"]["value"] == pytest.approx(
        7 * len(times) / whole, rel=1e-4
    )

"""Killed runs go on without asking anything again; over three thousand streaming rounds, memory
stays flat.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import Forks
from release_rows import streaming_row
from runs import Run

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from training.drawings.clips import encode_clip

pytestmark = pytest.mark.slow

VIDEOS, ITEMS, ROUNDS = 12, 600, 5
SCRIPTED = str(Path(__file__).parent / "scripted_run.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data of 600 items with five rounds each, over twelve videos of one minute."""
    root = tmp_path_factory.mktemp("rounds")
    for video in range(VIDEOS):
        path = root / "media" / "cholec80" / f"v{video}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        grey = np.full((240, 320, 3), 40 + video, dtype=np.uint8)
        encode_clip(
            path,
            [Fraction(number, 2) for number in range(120)],
            lambda index, _, grey=grey: grey + index % 60,
        )
    rows = [item(number) for number in range(ITEMS)]
    (root / "records").mkdir()
    (root / "records" / "cholec80.jsonl").write_text(
        "\n".join(json.dumps(row, indent=1) for row in rows)
    )
    prepared = prepare_medstream(
        str(root / "records"), root / "media", root / "data" / "medstreambench"
    )
    assert prepared.manifest.counts.by_kind["rounds"] == ITEMS * ROUNDS
    return root / "data"


def item(number: int) -> dict[str, Any]:
    start = 2.0 + number % 17
    times = [start + 4 + 6 * turn for turn in range(ROUNDS)]
    return streaming_row(
        sample_id=f"s{number:03}",
        video_id=f"v{number % VIDEOS}",
        media_path=f"Stream_Bench/cholec80/v{number % VIDEOS}.mp4",
        query_time=start,
        rounds=[
            {
                "current_time": time,
                "expected_output": "closure" if turn >= 3 else "unanswerable",
                "answerable": turn >= 3,
            }
            for turn, time in enumerate(times)
        ],
    )


KILLS = str(Path(__file__).parents[2] / "performance" / "kills.py")


def test_kills_at_random_moments_lose_nothing_and_ask_nothing_again(python: Any) -> None:
    done = python(KILLS, "--kills", "3", "--only", "medtasks_vlm")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.startswith("3 kills, seed 0\n")


def test_a_killed_run_goes_on_without_asking_anything_again(
    python: Any, tmp_path: Path, data: Path
) -> None:
    def run(output: str, log: str, kill_at: int) -> Any:
        return python(
            SCRIPTED,
            str(tmp_path / output),
            str(tmp_path / log),
            str(kill_at),
            MEDTASKS_DATA=str(data),
        )

    killed = run("output", "killed", ITEMS * ROUNDS // 2)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    (left,) = (tmp_path / "output").rglob("*_unfinished")
    again = run("output", "again", -1)
    assert again.returncode == 0, again.stderr[-2000:]
    assert not left.exists()
    whole = run("whole", "all", -1)
    assert whole.returncode == 0, whole.stderr[-2000:]

    def asked(log: str) -> list[list[str]]:
        return [line.split("\t") for line in (tmp_path / log).read_text().splitlines()]

    counts = Counter(line[0] for log in ("killed", "again") for line in asked(log))
    assert len(asked("killed")) >= ITEMS * ROUNDS // 2
    assert len(counts) == ITEMS * ROUNDS
    assert set(counts.values()) == {1}
    (restarted,), (unbroken,) = (
        list((tmp_path / name).rglob("*_medtasks")) for name in ("output", "whole")
    )
    assert Run(restarted).files() == Run(unbroken).files()
    assert Run(restarted).scores["medstreambench_future_streaming"]["items"] == ITEMS

    used = [int(line[2]) - int(line[3]) for line in asked("all")]
    assert used[-1] - used[300] < 40 * 2**20
    decoded = int(asked("all")[-1][4])
    shown = sum(int(line[1]) for line in asked("all"))
    assert decoded < shown / 3


def processes(forks: Forks, folders: Sequence[Path], *arguments: str) -> list[int]:
    """Exit codes of two processes that run `scripted_run.py`, each in its folder, with what
    torchrun tells them.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}

    def code(rank: int) -> int:
        folder = folders[rank]
        own = {
            "RANK": str(rank),
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "2",
            "MEDTASKS_CACHE": str(folder / "cache"),
        }
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, **where, **own, "ACCELERATE_USE_CPU": "true"}
        printed = folder / f"rank{rank}"
        printed.mkdir(exist_ok=True)
        return forks.run([SCRIPTED, *arguments], folder, environment, printed).returncode

    with ThreadPoolExecutor(2) as both:
        return list(both.map(code, range(2)))


DIED = [-signal.SIGKILL] * 2


def asked(log: Path) -> list[int]:
    return sorted(map(int, log.read_text().split()))


def test_processes_that_die_cost_no_reply(forks: Forks, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    assert processes(forks, [tmp_path] * 2, "output", str(log), "kill") == DIED
    assert processes(forks, [tmp_path] * 2, "output", str(log), "live") == [0, 0]
    every = list(range(len(task_documents("kvasir_vqa_x1_level1"))))
    assert asked(log) == every  # each was answered once
    (folder,) = tmp_path.rglob("*_medtasks")
    assert Run(folder).manifest["tasks"]["kvasir_vqa_x1_level1"]["answered"] == len(every)


def test_nodes_without_a_shared_file_system_that_die_cost_no_reply(
    forks: Forks, tmp_path: Path
) -> None:
    log = tmp_path / "asked"
    nodes = [tmp_path / "node0", tmp_path / "node1"]
    assert processes(forks, nodes, "output", str(log), "kill") == DIED
    assert processes(forks, nodes, "output", str(log), "live") == [0, 0]
    every = list(range(len(task_documents("kvasir_vqa_x1_level1"))))
    assert asked(log) == every  # each was answered once
    (whole,) = nodes[0].rglob("*_medtasks")
    assert Run(whole).manifest["tasks"]["kvasir_vqa_x1_level1"]["answered"] == len(every)
    assert not list(nodes[1].rglob("*_medtasks"))
    assert processes(forks, nodes, "output", str(log), "live") == [0, 0]
    assert asked(log) == sorted(
        every * 2
    )  # the second node's replies of the finished run are not used again
    again = max(nodes[0].rglob("*_medtasks"))
    assert again != whole
    assert Run(again).files() == Run(whole).files()

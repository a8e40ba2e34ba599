"""One process of several dies: the run ends with a sentence that names it, and the next start resumes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from runs import Run

from medtasks.benchmarks.documents import task_documents

pytestmark = pytest.mark.slow

RUN = Path(__file__).parent / "dying_run.py"
SENTENCE = re.compile(
    r"medtasks: process 1 \(pid \d+ on \S+\) ended before the run was finished, so the run stops; "
    r"the same command continues from the replies so far \((.+_unfinished)\)\."
)
LONGEST = 900
"""Seconds after which a run counts as hanging: its first process sleeps for an hour."""


def launched(how: str, output: Path, log: Path) -> subprocess.CompletedProcess[str]:
    """The run under torchrun."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    return subprocess.run(
        [sys.executable, *launcher, str(RUN), str(output), str(log), how],
        capture_output=True,
        text=True,
        env={**os.environ, "ACCELERATE_USE_CPU": "true"},
        timeout=LONGEST,
        check=False,
    )


def by_hand(how: str, output: Path, log: Path) -> list[subprocess.CompletedProcess[str]]:
    """The run's processes without a launcher that would stop one when the other has died."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "ACCELERATE_USE_CPU": "true", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    processes = [
        subprocess.Popen(
            [sys.executable, str(RUN), str(output), str(log), how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**shared, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
        )
        for rank in ("0", "1")
    ]
    try:
        ended = [(one, *one.communicate(timeout=LONGEST)) for one in processes]
    finally:
        for one in processes:
            one.kill()
    return [subprocess.CompletedProcess(one.args, one.returncode, out, err) for one, out, err in ended]


@pytest.mark.parametrize("how", ["kill", "exit"])
def test_a_process_that_dies_ends_the_run_and_the_next_start_resumes(how: str, tmp_path: Path) -> None:
    output, log = tmp_path / "output", tmp_path / "asked"
    broken = launched(how, output, log)
    assert broken.returncode != 0
    named = SENTENCE.search(broken.stderr)
    assert named is not None, broken.stderr[-3000:]
    assert Path(named[1]).is_dir()

    again = launched("live", output, log)
    assert again.returncode == 0, again.stderr[-3000:]
    count = len(task_documents("kvasir_vqa_x1_level1"))
    assert sorted(map(int, log.read_text().split())) == list(range(count))  # each was answered once
    (folder,) = output.rglob("*_medtasks")
    assert Run(folder).manifest["tasks"]["kvasir_vqa_x1_level1"]["answered"] == count


def test_the_others_notice_without_a_launcher(tmp_path: Path) -> None:
    first, second = by_hand("kill", tmp_path / "output", tmp_path / "asked")
    assert second.returncode == -9
    assert first.returncode == 1
    assert SENTENCE.search(first.stderr), first.stderr[-3000:]

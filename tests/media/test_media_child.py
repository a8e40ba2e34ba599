"""A crash of the video decoder costs the records of one video, not the preparation."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from release_rows import single_turn_row
from time_coded import write_video

from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.core.errors import MediaError
from medtasks.data.media.child import Crashed, call_in_child


def pid_and(value: int) -> tuple[int, int]:
    return os.getpid(), value


def refuse() -> None:
    raise MediaError("a.mp4: not a video.")


def test_calls_are_answered_by_other_processes_and_errors_arrive() -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda value: call_in_child(pid_and, value), range(40)))
    assert [value for _, value in answers] == list(range(40))
    processes = {process for process, _ in answers}
    assert os.getpid() not in processes
    assert len(processes) <= 2  # they are used again
    with pytest.raises(MediaError, match=r"a\.mp4: not a video"):
        call_in_child(refuse)


def test_a_crash_is_raised_and_the_next_call_is_answered() -> None:
    with pytest.raises(Crashed, match="Segmentation fault"):
        call_in_child(faulthandler._sigsegv)
    with pytest.raises(Crashed, match="exit code 3"):
        call_in_child(os._exit, 3)
    child = call_in_child(os.getpid)
    os.kill(child, signal.SIGKILL)  # while it waits, which says nothing about the next call
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert call_in_child(abs, -1) == 1


PARENT = """
import time
from medtasks.data.media.child import call_in_child
import os
print(call_in_child(os.getpid), flush=True)
time.sleep(600)
"""


def test_no_child_outlives_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    with suppress(psutil.NoSuchProcess):
        child = psutil.Process(pid)
        for _ in range(300):
            if child.status() == psutil.STATUS_ZOMBIE:
                return
            time.sleep(0.1)
        pytest.fail("the child is still there")


def test_a_video_that_crashes_the_decoder_is_named_and_its_records_are_counted(
    tmp_path: Path,
) -> None:
    rows = []
    for name in ("a", "b", "c"):
        write_video(tmp_path / "media" / f"{name}.mp4", list(range(0, 20_000, 500)))
        rows.append(single_turn_row(sample_id=name, media_path=f"{name}.mp4"))
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    call_in_child(sys.addaudithook, crash_on_b)  # the one worker takes the child that waits
    prepared = prepare_medstream(
        str(tmp_path / "records"), tmp_path / "media", tmp_path / "out", workers=1
    )
    manifest = prepared.manifest
    assert (manifest.counts.rows, manifest.excluded, manifest.excluded_samples) == (
        2,
        {"unreadable_media": 1},
        ("b",),
    )
    crash = "crashes the video decoder (Segmentation fault); convert it to MP4, or fetch it again."
    assert manifest.excluded_media == {"b.mp4": crash}


def crash_on_b(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: the process dies when it opens b.mp4. Which files crash a decoder depends on
    its version.
    """
    if event == "open" and str(arguments[0]).endswith("b.mp4"):
        os.kill(os.getpid(), signal.SIGSEGV)

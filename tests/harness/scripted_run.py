"""Runs whose back-end writes down every question and can be killed, in processes of their own.

Started by test_harness_restart.py: scripted_run.py OUTPUT LOG KILL_AT (the number of a question of
the streaming task, -1 for none), or scripted_run.py OUTPUT LOG kill|live (one of two processes;
they die at their second batch, or not).
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmms_eval.models  # noqa: F401  (our hook comes with it)
from foreign_backend import evaluate
from medtasks.adapters._base import MedtasksAdapter
from medtasks.adapters._requests import ChatRequest, plan_batches

from medtasks.data.media.frame_store import FRAMES
from medtasks.runs.replies import Reply

BATCH = 8


class Scripted(MedtasksAdapter):
    """Joins the processes of its run."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log
        self._asked = 0

    def describe(self) -> dict[str, Any]:
        return {"model": type(self).__name__.lower()}

    def write(self, lines: list[str]) -> None:
        with self._log.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines)


class Probe(Scripted):
    """Kills the process at a given question."""

    kill_at = -1

    def batches(self, requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
        return plan_batches(requests, BATCH)

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        if 0 <= self.kill_at <= self._asked:
            os.kill(os.getpid(), signal.SIGKILL)
        replies = []
        for request in requests:
            (turn,) = request.messages(self.task_dict)
            shown = sum(part["type"] == "image" for part in turn["content"])
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            self.write(
                [f"{request.sample_id}\t{shown}\t{used}\t{FRAMES.held.nbytes}\t{FRAMES.decoded}"]
            )
            blank = zlib.crc32(request.sample_id.encode()) % 7 == 0  # which is a response, too
            replies.append(Reply("" if blank else "unanswerable"))
        self._asked += len(requests)
        return replies


class Dying(Scripted):
    """Dies at its second batch."""

    lives = False

    def batches(self, requests: list[ChatRequest]) -> list[list[ChatRequest]]:
        return [requests[:1], requests[1:]] if requests[1:] else [requests]

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        self._asked += 1
        if self._asked == 2 and not self.lives:
            while len(self._log.read_text().splitlines()) < 2:  # the first batch of both processes
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        self.write([str(request.doc_id) for request in requests])
        return [Reply("none") for _ in requests]


if __name__ == "__main__":
    output, log, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if how in ("kill", "live"):
        Dying.lives = how == "live"
        evaluate(Dying(log), ["kvasir_vqa_x1_level1"], output, model_args=None)
    else:
        Probe.kill_at = int(how)
        evaluate(Probe(log), ["medstreambench_future_streaming"], output, model_args=None)

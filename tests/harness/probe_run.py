"""A run of the streaming task whose model writes down every question, and can be killed at a given one.

Started by test_harness_restart.py: probe_run.py OUTPUT LOG KILL_AT
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import zlib
from pathlib import Path
from typing import Any

TASK = "medstreambench_future_streaming"
BATCH = 8


def main(output: Path, log: Path, kill_at: int) -> None:
    import lmms_eval.models  # noqa: F401  (our hook comes with it)
    from lmms_eval import evaluator
    from lmms_eval.loggers import EvaluationTracker
    from lmms_eval.tasks import TaskManager
    from medtasks.adapters._base import MedtasksAdapter, Response
    from medtasks.adapters._requests import plan_batches, read_requests

    from medtasks.data.media.frames import default_frames

    class Probe(MedtasksAdapter):
        def __init__(self) -> None:
            super().__init__()
            self.join_replicas("cpu")
            self.asked = 0

        def describe(self) -> dict[str, Any]:
            return {"model": "probe"}

        def plan_requests(self, requests: list[Any]) -> list[list[int]]:
            batches = plan_batches(read_requests(requests, self.task_dict), BATCH)
            return [[request.position for request in batch] for _, batch in batches]

        def generate_until(self, requests: list[Any]) -> list[Any]:
            if 0 <= kill_at <= self.asked:
                os.kill(os.getpid(), signal.SIGKILL)
            answers = []
            with log.open("a", encoding="utf-8") as stream:
                for request in read_requests(requests, self.task_dict):
                    (turn,) = request.messages(self.task_dict)
                    shown = sum(part["type"] == "image" for part in turn["content"])
                    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                    held = default_frames().held_bytes
                    stream.write(f"{request.sample_id}\t{shown}\t{used}\t{held}\t{default_frames().decoded}\n")
                    blank = zlib.crc32(request.sample_id.encode()) % 7 == 0  # which is a response, too
                    answers.append(Response("" if blank else "unanswerable"))
                    self.asked += 1
            return answers

    TaskManager("WARNING", include_defaults=False)  # the hook wraps the evaluator
    evaluator.simple_evaluate(
        model=Probe(),
        tasks=[TASK],
        log_samples=False,
        bootstrap_iters=0,
        evaluation_tracker=EvaluationTracker(output_path=str(output)),
        task_manager=TaskManager("WARNING", include_defaults=False),
        verbosity="WARNING",
        datetime_str="now",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))

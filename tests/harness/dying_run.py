"""One process of a run of several; the second one dies at its second batch, and the first one would never end.

Started by test_harness_restart.py: dying_run.py OUTPUT LOG HOW, where HOW is kill or live.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

TASK = "kvasir_vqa_x1_level1"


def main(output: Path, log: Path, how: str) -> None:
    import lmms_eval.models  # noqa: F401  (our hook comes with it)
    from lmms_eval import evaluator
    from lmms_eval.loggers import EvaluationTracker
    from lmms_eval.tasks import TaskManager
    from medtasks.adapters._base import MedtasksAdapter, Response

    class Dying(MedtasksAdapter):
        def __init__(self) -> None:
            super().__init__()
            self.join_replicas("cpu")
            self.batches = 0

        def describe(self) -> dict[str, Any]:
            return {"model": "dying"}

        def plan_requests(self, requests: list[Any]) -> list[list[int]]:
            return [[number for number in batch if number < len(requests)] for batch in ([0], range(1, len(requests)))]

        def generate_until(self, requests: list[Any]) -> list[Any]:
            self.batches += 1
            if self.batches == 2 and how != "live":
                if self.rank == 0:
                    time.sleep(3600)
                time.sleep(1)  # the first process is in its second batch, too
                os.kill(os.getpid(), signal.SIGKILL)
            with log.open("a", encoding="utf-8") as stream:
                stream.write("".join(f"{request.doc_id}\n" for request in requests))
            return [Response("none") for _ in requests]

    TaskManager("WARNING", include_defaults=False)  # the hook wraps the evaluator
    evaluator.simple_evaluate(
        model=Dying(),
        tasks=[TASK],
        log_samples=False,
        bootstrap_iters=0,
        evaluation_tracker=EvaluationTracker(output_path=str(output)),
        task_manager=TaskManager("WARNING", include_defaults=False),
        verbosity="WARNING",
        datetime_str="now",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])

"""S7: peak memory of a run by number of documents, Kvasir-shaped, with pictures.

The back-end decodes the pictures of each batch and answers with sentences of its own, so that no
model's memory hides the growth. For each size a process of its own prints the peak when the first
batch arrives, after the last one, before scoring, and at the end. 24 questions share one of the 720
× 576 pictures, as in the release.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

STAGES = ("first batch", "last batch", "before scoring", "end")


def peak() -> int:
    """Peak resident memory of this process so far, in MiB."""
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024


def run(output: Path) -> dict[str, int]:
    """Peak memory of one run by stage."""
    import lmms_eval.models  # noqa: F401  # our hook comes with it
    from lmms_eval import evaluator
    from lmms_eval.loggers import EvaluationTracker
    from lmms_eval.tasks import TaskManager
    from medtasks.adapters._base import MedtasksAdapter
    from medtasks.adapters._requests import ChatRequest, plan_batches

    from medtasks.catalog.contents import task_directory
    from medtasks.harness import collection
    from medtasks.runs.replies import Reply

    peaks: dict[str, int] = {}
    number = count()

    class Looking(MedtasksAdapter):
        def __init__(self) -> None:
            super().__init__()

        def describe(self) -> dict[str, Any]:
            return {"model": "looking"}

        def batches(self, requests: list[ChatRequest]) -> Any:
            return plan_batches(requests, 32)

        def answer(self, requests: list[ChatRequest]) -> list[Reply]:
            for request in requests:
                (turn,) = request.messages(self.task_dict)
                assert any(part["type"] == "image" for part in turn["content"])
            peaks.setdefault(STAGES[0], peak())
            peaks[STAGES[1]] = peak()
            replies = []
            for _ in requests:
                text = f"One polyp is seen, with answer {next(number)} of the run."
                replies.append(Reply(text))
            return replies

    def collected(*arguments: Any) -> Any:
        peaks[STAGES[2]] = peak()
        return collect_run(*arguments)

    collect_run, collection.collect_run = collection.collect_run, collected
    tasks = {"include_path": str(task_directory()), "include_defaults": False}
    TaskManager("WARNING", **tasks)  # the hook wraps the evaluator
    evaluator.simple_evaluate(
        model=Looking(),
        tasks=["kvasir_vqa_x1"],
        log_samples=False,
        bootstrap_iters=0,
        evaluation_tracker=EvaluationTracker(output_path=str(output)),
        task_manager=TaskManager("WARNING", **tasks),
        verbosity="WARNING",
        datetime_str="now",
    )
    return {**peaks, STAGES[3]: peak()}


def prepared(folder: Path, size: int) -> Path:
    """Prepared data of ``size`` documents."""
    from generated_files import jsonl, linked, picture
    from generated_releases import PER_IMAGE, VARIETY, kvasir_rows

    from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir

    rows = list(kvasir_rows())
    step = len(rows) // size
    chosen = [row for number, row in enumerate(rows) if number // PER_IMAGE % step == 0][:size]
    ids = dict.fromkeys(row["img_id"] for row in chosen)
    stock = [picture(number, 720, 576, "JPEG") for number in range(VARIETY)]
    linked(folder / "images", (f"{name}.jpg" for name in ids), stock)
    jsonl(folder / "test.jsonl", iter(chosen))
    prepare_kvasir(str(folder), folder / "data" / "kvasir_vqa_x1")
    return folder / "data"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 4_000, 16_022])
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        print(json.dumps(run(options.run)))
        return
    print(
        f"{platform.machine()}, Python {platform.python_version()}; "
        f"peak memory in MiB at each stage\n"
    )
    print(f"| documents | {' | '.join(STAGES)} |\n|---:|{'---:|' * len(STAGES)}")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            data = prepared(Path(folder), size)
            done = subprocess.run(
                [sys.executable, __file__, "--run", f"{folder}/output"],
                env={**os.environ, "MEDTASKS_DATA": str(data), "MEDTASKS_CACHE": f"{folder}/cache"},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        peaks = json.loads(done.stdout.splitlines()[-1])
        print(f"| {size:,} | {' | '.join(f'{peaks[stage]:,}' for stage in STAGES)} |", flush=True)


if __name__ == "__main__":
    main()

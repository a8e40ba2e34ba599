"""A run's manifest says what the run used: on any back-end, and resumed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from foreign_backend import Backend, evaluate
from lmms_eval.api.instance import GenerationResult, TokenCounts
from runs import Run

from medtasks.benchmarks.documents import task_documents
from medtasks.runs.unfinished import read_work
from medtasks.scoring.finished_run import score_unfinished

TASK, OTHER = "med_cmr_mcq_ltg", "med_cmr_mcq_msi"
pytestmark = pytest.mark.slow

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500"


def counted(document: dict[str, Any]) -> GenerationResult:
    return GenerationResult(document["target"], TokenCounts(output_tokens=3))


def usage(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.manifest["usage"]
    return found


def test_what_a_foreign_back_end_counts_is_in_the_manifest(tmp_path: Path) -> None:
    found = usage(evaluate(Backend(counted), [TASK, OTHER], tmp_path))
    sizes = {task: len(task_documents(task)) for task in (TASK, OTHER)}
    assert {task: one["samples"] for task, one in found["tasks"].items()} == sizes
    assert found["output_tokens"] == 3 * sum(sizes.values())
    assert found["samples_per_second"] == pytest.approx(
        found["samples"] / found["seconds"], rel=0.01, abs=0.001
    )
    assert 0 < found["time_to_first_answer"] <= found["seconds"]
    unknown = {
        "prompt_tokens",
        "vision_tokens",
        "reused_tokens",
        "media_share",
        "peak_rss",
        "peak_device_memory",
    }
    assert not unknown & found.keys()


def test_a_resumed_run_has_the_usage_of_all_its_parts(tmp_path: Path) -> None:
    lost = {document["sample_id"] for document in task_documents(TASK)[:2]}
    first = Backend(lambda doc: FAILED if doc["sample_id"] in lost else counted(doc))
    part = usage(evaluate(first, [TASK], tmp_path))
    count = len(task_documents(TASK))
    assert (part["samples"], part["output_tokens"]) == (count - 2, 3 * (count - 2))
    (kept,) = tmp_path.rglob("*_unfinished")
    before = [one for process in read_work(kept).values() for one in process]
    assert len(before) == count
    scored = score_unfinished(kept, created="now").manifest.usage
    assert (scored.samples, scored.seconds) == (part["samples"], part["seconds"])

    whole = usage(evaluate(Backend(counted), [TASK], tmp_path))
    assert (whole["samples"], whole["output_tokens"]) == (count, 3 * count)
    assert (
        whole["seconds"] > sum(one.reply.work.seconds for one in before if one.reply.work) - 0.001
    )
    assert whole["time_to_first_answer"] <= part["time_to_first_answer"]


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from foreign_backend import Backend, evaluate
from test_harness_usage import TASK, counted

def answer(document):
    if len(backend.asked) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return counted(document)

backend = Backend(answer)
evaluate(backend, [TASK], Path(sys.argv[2]))
"""


def test_a_run_resumed_after_a_kill_has_the_usage_of_both_parts(
    python: Any, tmp_path: Path
) -> None:
    """Without the request that was being answered: nothing of it is known."""
    before, count = 3, len(task_documents(TASK))
    killed = python("-c", _KILLED, str(Path(__file__).parent), str(tmp_path), str(before))
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    (kept,) = tmp_path.rglob("*_unfinished")
    (first,) = read_work(kept).values()
    assert len(first) == before < count

    backend = Backend(counted)
    whole = usage(evaluate(backend, [TASK], tmp_path))
    assert len(backend.asked) == count - before
    assert (whole["samples"], whole["output_tokens"]) == (count, 3 * count)
    assert whole["seconds"] > sum(one.reply.work.seconds for one in first if one.reply.work) - 0.001
    assert whole["tasks"][TASK]["output_tokens"] == 3 * count

"""``--predict_only`` keeps responses without scoring them; one run has one time in all of its
names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import TASK, lmms_eval
from failing_server import FailingServer, error
from foreign_backend import Backend, evaluate
from test_harness_failures import target
from test_harness_usage import FAILED

from medtasks.benchmarks.documents import task_documents


@pytest.mark.slow
def test_responses_are_kept_unscored_and_scored_later(
    python: Any, medtasks: Any, tmp_path: Path
) -> None:
    ended = lmms_eval(python, tmp_path, "--predict_only")
    assert ended.code == 0
    assert not [*ended.output.rglob("*_medtasks")]
    (results,) = ended.output.rglob("*_results.json")
    assert "accuracy" not in results.read_text(encoding="utf-8")
    (kept,) = ended.output.rglob("*_unfinished")
    count = len(task_documents(TASK))
    assert f"medtasks: {count} responses, not scored (--predict_only)\n" in ended.out
    assert f"`medtasks score {kept}`" in ended.out

    scored = json.loads(medtasks("score", str(kept), "--json").stdout)
    assert scored["tasks"][TASK]["metrics"]["accuracy"]["value"] == 1
    again = lmms_eval(python, tmp_path)
    assert again.run.scores[TASK]["metrics"]["accuracy"]["value"] == 1
    assert not kept.exists()


def test_a_program_gets_no_scores_either_and_the_same_run_without_it_asks_nothing(
    tmp_path: Path,
) -> None:
    first, second = Backend(target), Backend(target)
    evaluate_predictions(first, tmp_path)
    assert len(first.asked) == len(task_documents(TASK))
    run = evaluate(second, [TASK], tmp_path)
    assert not second.asked
    assert run.scores[TASK]["metrics"]["accuracy"]["value"] == 1


def test_requests_that_fail_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lost = {document["sample_id"] for document in task_documents(TASK)[:2]}
    evaluate_predictions(
        Backend(lambda doc: FAILED if doc["sample_id"] in lost else target(doc)), tmp_path
    )
    printed = capfd.readouterr()
    count = len(task_documents(TASK))
    assert f"medtasks: {count - 2} responses, not scored" in printed.out
    assert f"medtasks: 2 of {count} requests have no response" in printed.err


def evaluate_predictions(backend: Backend, output: Path) -> None:
    with pytest.raises(KeyError, match="medtasks"):  # there is no result directory
        evaluate(backend, [TASK], output, predict_only=True)


@pytest.mark.slow
def test_the_harness_s_files_and_ours_have_one_time(python: Any, tmp_path: Path) -> None:
    ended = lmms_eval(
        python, tmp_path, "--log_samples", "--timezone", "Asia/Kolkata", "--limit", "1", TZ="UTC"
    )
    (results,) = ended.output.rglob("*_results.json")
    (samples,) = ended.output.rglob("*_samples_*.jsonl")
    stamp = results.name.removesuffix("_results.json")
    assert samples.name.startswith(stamp)
    assert ended.run.folder.name == f"{stamp}+0530_medtasks"
    assert ended.run.manifest["harness_stamp"] == stamp


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai", "async_openai"])
def test_the_last_line_names_a_failed_server_and_why(
    model: str, python: Any, tmp_path: Path
) -> None:
    settings = "model_version=m,api_key=x,max_retries=1,timeout=5,retry_backoff_s=0.01"
    with FailingServer(lambda _: error(500, "out of memory")) as server:
        named = f"{settings},base_url={server.url}"
        ended = lmms_eval(python, tmp_path, "--model", model, "--model_args", named)
    assert ended.code == 1
    assert ended.sentence.startswith("medtasks: ")
    assert server.url in ended.sentence
    assert "out of memory" in ended.sentence

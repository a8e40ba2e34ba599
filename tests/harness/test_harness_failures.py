"""A request that failed is no answer: not scored, not kept as one, counted by reason, and asked
again.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from failing_server import FailingServer, completion, error
from foreign_backend import Backend, evaluate
from lmms_eval.api.instance import GenerationResult, TokenCounts
from runs import Run

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import MedtasksError
from medtasks.harness import run_tasks
from medtasks.harness.evaluator import with_checks, wrapped
from medtasks.harness.results import replace_numbers
from medtasks.metrics.registry import learned_metric
from medtasks.runs.unfinished import read_answers
from medtasks.scoring.run_folder import read_run
from medtasks.scoring.summary import format_score
from medtasks.scoring.verified_runs import scored_record

TASK = "med_cmr_mcq_ltg"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")


def at(url: str, **settings: Any) -> str:
    """Arguments of a back-end that asks the server at ``url``."""
    named = {"model_version": "m", "retry_backoff_s": 0, "base_url": url, **settings}
    return ",".join(f"{name}={value}" for name, value in named.items())


def command(model: str, arguments: str, task: str, output: Path) -> tuple[str, ...]:
    return (
        "--model",
        model,
        "--model_args",
        arguments,
        "--tasks",
        task,
        "--output_path",
        str(output),
    )


def unfinished(output: Path) -> list[Path]:
    return sorted(output.rglob("*_unfinished"))


def target(document: dict[str, Any]) -> str:
    return str(document.get("ideal_response") or document["target"])


MARKER = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 400 - choose (A)"
NO_TEXT = 'can only concatenate str (not "NoneType") to str'
BLANK = "blank response, with no sign that the model generated a token"
NO_RESPONSE = [
    (MARKER, "after 5 retries: Error code: 400 - choose (A)"),
    ("[LMMS_EVAL_REQUEST_FAILED after 1 retries] B", "after 1 retries: B"),
    ("[LMMS_EVAL_BUDGET_EXCEEDED]", "LMMS_EVAL_BUDGET_EXCEEDED"),
    ("[SAFETY_BLOCKED:finish_reason=2]", "SAFETY_BLOCKED:finish_reason=2"),
    (f"Error: {NO_TEXT}", NO_TEXT),
    (None, "the back-end returned nothing"),
    ("  \n", BLANK),
    (GenerationResult("", TokenCounts(5, 0)), BLANK),
]
"""What back-ends return for a request without a response, and the reason that we give."""


def test_no_response_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    ids = [document["sample_id"] for document in task_documents(TASK)]
    lost = dict(zip(ids, NO_RESPONSE, strict=False))
    assert len(ids) > len(lost) == len(NO_RESPONSE)
    run = evaluate(
        Backend(lambda doc: lost.get(doc["sample_id"], (target(doc),))[0]), [TASK], tmp_path
    )

    count, answered = len(ids), len(ids) - len(lost)
    accuracy = run.scores[TASK]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["samples"], accuracy["answered"]) == (1.0, count, answered)
    assert accuracy["bounds"] == [pytest.approx(answered / count), 1.0]
    assert accuracy["incomplete"]
    assert run.scores[TASK]["status"] == {"failed": len(lost), "ok": answered}
    failed = {one["sample_id"]: one for one in run.samples(TASK) if one["status"] == "failed"}
    assert {name: one["failed"] for name, one in failed.items()} == {
        name: [why] for name, (_, why) in lost.items()
    }
    assert not any(one["statistics"] for one in failed.values())
    facts = run.manifest["tasks"][TASK]
    assert (facts["asked"], facts["answered"], sum(facts["failed"].values())) == (
        count,
        answered,
        len(lost),
    )


def test_a_model_that_says_nothing_has_answered(tmp_path: Path) -> None:
    """One token, such as the end of the text, is a response; a model must not be able to skip what
    it cannot answer.
    """
    silent = task_documents(TASK)[1]["sample_id"]
    nothing = GenerationResult("", TokenCounts(5, 1))
    run = evaluate(
        Backend(lambda doc: nothing if doc["sample_id"] == silent else target(doc)),
        [TASK],
        tmp_path,
    )

    count = len(task_documents(TASK))
    assert run.scores[TASK]["metrics"]["accuracy"]["value"] == pytest.approx((count - 1) / count)
    assert run.scores[TASK]["status"] == {"empty": 1, "ok": count - 1}


def test_a_run_of_blank_responses_has_no_answer(tmp_path: Path) -> None:
    run = evaluate(Backend(lambda _: GenerationResult("", TokenCounts(5, 1))), [TASK], tmp_path)

    accuracy = run.scores[TASK]["metrics"]["accuracy"]
    assert accuracy["value"] is None
    assert accuracy["answered"] == 0
    assert run.manifest["tasks"][TASK]["failed"] == {
        "every response of the run is blank": len(task_documents(TASK))
    }


def test_one_bad_document_and_one_broken_task_cost_themselves_alone(tmp_path: Path) -> None:
    bad = task_documents(TASK)[2]["sample_id"]

    def answer(document: dict[str, Any]) -> str:
        if document["sample_id"] == bad or document["dimension"] == "msi":
            raise RuntimeError(f"image of {document['dimension']} is broken\nand more")
        return target(document)

    backend = Backend(answer)
    run = evaluate(backend, [TASK, "med_cmr_mcq_msi"], tmp_path)

    count, broken = len(task_documents(TASK)), len(task_documents("med_cmr_mcq_msi"))
    assert run.manifest["tasks"][TASK]["failed"] == {"RuntimeError: image of ltg is broken": 1}
    assert run.scores[TASK]["metrics"]["accuracy"]["answered"] == count - 1
    assert run.manifest["tasks"]["med_cmr_mcq_msi"]["failed"] == {
        "RuntimeError: image of msi is broken": broken
    }
    assert run.scores["med_cmr_mcq_msi"]["metrics"]["accuracy"]["value"] is None


def test_the_same_command_asks_only_for_what_failed(tmp_path: Path) -> None:
    lost = {document["sample_id"] for document in task_documents(TASK)[:2]}
    first = Backend(lambda doc: MARKER if doc["sample_id"] in lost else target(doc))
    evaluate(first, [TASK], tmp_path)
    (kept,) = unfinished(tmp_path)
    assert {one.slot.doc_id for one in read_answers(kept) if one.reply.failed is not None} == {0, 1}

    second = Backend(target)
    run = evaluate(second, [TASK], tmp_path)
    assert {sample_id for _, sample_id in second.asked} == lost
    assert run.scores[TASK]["metrics"]["accuracy"]["value"] == 1.0
    assert not unfinished(tmp_path)

    third = Backend(target)
    again = evaluate(third, [TASK], tmp_path)
    assert len(third.asked) == len(task_documents(TASK))  # a finished run is not reused
    assert again.files() == run.files()


def test_a_response_cache_is_refused_before_the_model_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = Backend(target)
    with pytest.raises(SystemExit) as ended:
        evaluate(backend, [TASK], tmp_path / "out", use_cache=str(tmp_path / "cache"))
    assert ended.value.code == 1
    assert "resuming needs no cache" in capsys.readouterr().err
    assert not backend.asked


class Interrupting:
    """Is interrupted within its destructor, where Python only prints the KeyboardInterrupt and goes
    on.
    """

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def interrupted_at(number: int) -> Callable[[dict[str, Any]], str]:
    asked: list[str] = []

    def answer(document: dict[str, Any]) -> str:
        asked.append(document["sample_id"])
        if len(asked) == number:
            Interrupting()
            time.sleep(60)  # ends with the interrupt
        return target(document)

    return answer


@pytest.mark.slow
def test_an_interrupt_ends_the_command_with_130_and_the_same_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        evaluate(Backend(interrupted_at(3)), [TASK], tmp_path, cli_args=argparse.Namespace())
    assert ended.value.code == 130
    (kept,) = unfinished(tmp_path)
    assert (
        f"medtasks: stopped; run the same command again to continue from the replies so far ({kept})."
        in (capsys.readouterr().err)
    )
    again = Backend(target)
    evaluate(again, [TASK], tmp_path)
    assert len(again.asked) == len(task_documents(TASK)) - 2
    assert not unfinished(tmp_path)


def test_an_interrupt_while_the_model_is_loaded_ends_with_130_and_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def loading(model: Any, tasks: list[str], cli_args: Any = None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    simple_evaluate = wrapped(loading, with_checks)
    with pytest.raises(SystemExit) as ended:
        simple_evaluate(object(), [TASK], argparse.Namespace())
    assert ended.value.code == 130
    assert capsys.readouterr().err == "medtasks: stopped; run the same command again.\n"
    for calls_of_others in ((object(), [TASK]), (object(), ["mmmu"], argparse.Namespace())):
        with pytest.raises(KeyboardInterrupt):
            simple_evaluate(*calls_of_others)


@pytest.mark.slow
def test_a_failed_round_earns_no_responsiveness_and_leaves_its_item_open(tmp_path: Path) -> None:
    task = "medstreambench_proactive"
    documents = task_documents(task)
    lost = documents[0]["sample_id"]
    run = evaluate(
        Backend(lambda doc: MARKER if doc["sample_id"] == lost else target(doc)), [task], tmp_path
    )

    items = len({document["item_id"] for document in documents})
    scores = run.scores[task]
    for name in ("overall", "responsiveness", "content"):
        metric = scores["metrics"][name]
        if name in ("overall", "responsiveness"):
            assert metric["answered"] == metric["samples"] - 1
        assert metric["bounds"][0] < metric["bounds"][1]
    assert scores["items"] == items
    assert scores["status"]["failed"] == 1


@pytest.mark.slow
def test_a_failed_round_of_stage_wise_probing_fails_the_sample_alone(tmp_path: Path) -> None:
    task = "mi_cxr_stagewise_icr"
    broken = task_documents(task)[0]["sample_id"]
    calls: list[str] = []

    def answer(document: dict[str, Any]) -> str:
        calls.append(document["sample_id"])
        if document["sample_id"] == broken and calls.count(broken) == 2:
            return MARKER
        return target(document)

    run = evaluate(Backend(answer), [task], tmp_path)
    (sample,) = (one for one in run.samples(task) if one["sample_id"] == broken)
    assert sample["failed"] == ["round 2: after 5 retries: Error code: 400 - choose (A)"]
    backend = Backend(target)
    evaluate(backend, [task], tmp_path)
    assert backend.asked == [(task, broken)]  # its first stage is not asked again


def test_a_metric_that_breaks_costs_neither_answers_nor_other_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(_: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    task = "kvasir_vqa_x1_level1"
    name = load_spec(task).metadata.learned[0]
    metric = learned_metric(name)
    monkeypatch.setattr(metric, "unavailable", lambda: None)
    monkeypatch.setattr(metric, "table", out_of_memory)
    run = evaluate(Backend(target), [task], tmp_path)

    assert run.scores[task]["metrics"]["exact_match"]["value"] == 1.0
    assert run.scores[task]["metrics"][name]["value"] is None
    (problem,) = run.manifest["problems"]
    assert "CUDA out of memory" in problem
    assert "`medtasks score`" in problem


def test_scoring_that_breaks_leaves_answers_from_which_score_makes_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from medtasks.cli.score import score
    from medtasks.scoring import run_record as record

    whole = evaluate(Backend(target), [TASK, "med_cmr_mcq_msi"], tmp_path / "whole")
    with monkeypatch.context() as patch:

        def breaks(*_: Any, **__: Any) -> Any:
            raise ValueError("a bug")

        patch.setattr(record, "scores_of", breaks)
        with pytest.raises(SystemExit) as ended:
            evaluate(Backend(target), [TASK, "med_cmr_mcq_msi"], tmp_path / "broken")
    assert ended.value.code == 1
    said = capsys.readouterr().err
    (kept,) = unfinished(tmp_path / "broken")
    assert "ValueError: a bug" in said
    assert str(kept) in said
    score(
        kept,
        out=tmp_path / "scored",
        model="unknown",
        layout=None,
        task=None,
        column=None,
        against=None,
        as_json=False,
    )
    assert Run(tmp_path / "scored").files() == whole.files()


def test_a_task_whose_scoring_breaks_is_named_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtasks.benchmarks import med_cmr

    original = med_cmr.process_mcq

    def breaks(doc: Any, results: Any) -> Any:
        if doc["dimension"] == "msi":
            raise ZeroDivisionError("division by zero")
        return original(doc, results)

    monkeypatch.setattr(med_cmr, "process_mcq", breaks)
    run = evaluate(Backend(target), [TASK, "med_cmr_mcq_msi"], tmp_path)

    assert set(run.scores) == {TASK}
    assert run.manifest["problems"] == [
        "med_cmr_mcq_msi: its answers could not be scored (ZeroDivisionError: division by zero)."
    ]
    assert len(read_answers(unfinished(tmp_path)[0])) == len(task_documents(TASK)) + len(
        task_documents("med_cmr_mcq_msi")
    )


def test_results_with_failed_requests_may_not_be_submitted(tmp_path: Path) -> None:
    from medtasks.leaderboard.intake.check import check_results
    from medtasks.leaderboard.intake.submission import Requirements

    run = evaluate(
        Backend(lambda doc: MARKER if doc["target"] == "A" else target(doc)), [TASK], tmp_path
    )
    refused = [
        one
        for one in check_results([run.folder], Requirements(demonstration=True)).findings
        if one.code == "LB210"
    ]
    assert [(one.severity, one.where) for one in refused] == [("error", TASK)]
    # samples that failed are read back and scored alike
    again = scored_record(*read_run(run.folder), own=True, whole=True)
    assert not again.changes
    assert json.loads(again.tasks[TASK].model_dump_json()) == run.scores[TASK]


def test_a_metric_without_bounds_has_no_response_in_both_tables(tmp_path: Path) -> None:
    task = "medstreambench_future_streaming"
    run = evaluate(Backend(lambda _: MARKER), [task], tmp_path)
    record = scored_record(*read_run(run.folder), own=True, whole=True)
    score = record.tasks[task].metrics["signed_delay"]
    assert score.bounds is None
    assert format_score("signed_delay", score) == "no response (0 of 3 answered)"
    results: dict[str, Any] = {"results": {}}
    replace_numbers(results, record)
    assert results["results"][task]["signed_delay,medtasks"] == "no response"


@pytest.mark.slow
def test_a_server_that_refuses_every_request_ends_the_command_with_exit_code_1(
    python: Any, tmp_path: Path
) -> None:
    with FailingServer(lambda _: error(400, "the answer is (A)")) as server:
        arguments = at(server.url, max_retries=1, num_concurrent=4)
        broken = python("-m", "lmms_eval", *command("openai", arguments, TASK, tmp_path / "out"))
    assert broken.returncode == 1, broken.stdout[-2000:]
    count = len(task_documents(TASK))
    assert f"{count} of {count} requests have no response" in broken.stderr
    assert (
        "More than 1 % failed (MEDTASKS_MAX_FAILED), so the run counts as failed." in broken.stderr
    )
    (folder,) = (tmp_path / "out").rglob("*_medtasks")
    assert Run(folder).scores[TASK]["metrics"]["accuracy"]["value"] is None
    assert list((tmp_path / "out").rglob("*_results.json"))


_LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
runpy.run_module("lmms_eval", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_no_reply_on_it_is_asked_again(
    python: Any, tmp_path: Path
) -> None:
    """No file may pass 1 MiB, so the replies of 300 kB each fill theirs; the back-end retries after
    any error.
    """
    task, flying = "kvasir_vqa_x1_level1", 2
    documents = len(task_documents(task))
    with FailingServer(lambda _: completion("A" * 300_000)) as server:
        asked = command(
            "async_openai", at(server.url, max_retries=5, num_cpus=flying), task, tmp_path
        )
        full = python("-c", _LIMITED, *asked)
        assert full.returncode == 1
        (kept,) = unfinished(tmp_path)
        assert f"medtasks: OSError: [Errno 27] File too large (replies are in {kept}" in full.stderr
        stored = len(read_answers(kept))
        assert 0 < stored < documents
        assert len(server.asked) <= stored + 2 * flying
        before = len(server.asked)
        again = python("-m", "lmms_eval", *asked)
        assert again.returncode == 0, again.stderr[-2000:]
        assert len(server.asked) - before == documents - stored
    (folder,) = tmp_path.rglob("*_medtasks")
    assert Run(folder).scores[task]["items"] == documents


_FULL_AFTERWARDS = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from foreign_backend import Backend, evaluate

def answer(document):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    return "A"

evaluate(Backend(answer), [sys.argv[4]], Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_disk_that_is_full_when_results_are_written_costs_no_inference(
    python: Any, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    full = python("-c", _FULL_AFTERWARDS, str(Path(__file__).parent), str(output), "8000", TASK)
    assert full.returncode == 1
    (kept,) = unfinished(output)
    assert f"OSError: [Errno 27] File too large (replies are in {kept}" in full.stderr
    assert not list(output.rglob("*_medtasks"))
    assert len(read_answers(kept)) == len(task_documents(TASK))

    backend = Backend(target)
    run = evaluate(backend, [TASK], output)
    assert not backend.asked
    assert run.manifest["tasks"][TASK]["answered"] == len(task_documents(TASK))
    assert not unfinished(output)


_SERVER_THAT_DIES = """
import os, signal, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/.."]
from failing_server import FailingServer, completion

def answer(text):
    if len(server.asked) > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return completion("A")

with FailingServer(answer) as server:
    print(server.port, flush=True)
    signal.pause()
"""


@pytest.mark.slow
def test_a_server_that_dies_ends_the_run_soon_and_the_same_command_continues(
    python: Any, tmp_path: Path
) -> None:
    task, flying, answers = "mi_cxr_tel", 2, 3
    documents = sum(len(task_documents(leaf)) for leaf in leaf_tasks(task))
    script = [sys.executable, "-c", _SERVER_THAT_DIES, str(Path(__file__).parent), str(answers)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1"
        asked = command("async_openai", at(url, max_retries=2, num_cpus=flying), task, tmp_path)
        try:
            dead = python("-m", "lmms_eval", *asked)
        finally:
            server.kill()
    assert dead.returncode == 1
    (kept,) = unfinished(tmp_path)
    stored = len(read_answers(kept))
    assert answers - flying <= stored <= answers < documents - 4 - flying
    assert (
        f"medtasks: async_openai: 4 requests in a row did not reach the server at {url} (max_retries=2: Connection "
        f"error), {stored} have a response; start the server again (replies are in {kept}: repeat the command to "
    ) in dead.stderr
    assert dead.stderr.count("All 2 attempts failed") < 4  # the fourth ends the run
    assert not list(tmp_path.rglob("*_medtasks"))

    with FailingServer(lambda _: completion("A"), port) as alive:
        again = python("-m", "lmms_eval", *asked)
    assert again.returncode == 0, again.stderr[-2000:]
    assert len(alive.asked) == documents - stored
    (folder,) = tmp_path.rglob("*_medtasks")
    assert Run(folder).scores[task]["items"] == documents


@pytest.mark.slow
def test_a_server_that_refuses_every_request_ends_the_run_soon(tmp_path: Path) -> None:
    task, message = "mi_cxr_tel", "The model `m` does not exist."
    with FailingServer(lambda _: error(404, message)) as server:
        with pytest.raises(MedtasksError) as refused:
            run_tasks("async_openai", at(server.url, max_retries=2, num_cpus=1), [task], tmp_path)
        asked = len(server.asked)
    assert asked == 3 * 2 + 1  # the fourth request ends the run
    assert str(refused.value).startswith(
        f"async_openai: the server at {server.url} refused the first 4 requests (status 404: "
        "The model `m` does not exist), 0 have a response; correct the model name or the key"
    )


@pytest.mark.slow
def test_refusals_after_an_answer_do_not_end_the_run(tmp_path: Path) -> None:
    task = "mi_cxr_tel"
    asked: list[str] = []

    def answer(text: str) -> Any:
        asked.append(text)
        return completion("A") if len(asked) == 1 else error(404, "no")

    with FailingServer(answer) as server:
        run_tasks("async_openai", at(server.url, max_retries=1, num_cpus=1), [task], tmp_path)
    assert len(asked) == sum(len(task_documents(leaf)) for leaf in leaf_tasks(task))


@pytest.mark.slow
def test_the_progress_bar_moves_with_every_reply_of_a_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def answer(_: str) -> Any:
        time.sleep(0.12)  # the bar is drawn every 0.1 seconds
        return completion("A")

    with FailingServer(answer) as server:
        run_tasks("async_openai", at(server.url, num_cpus=1), [TASK], tmp_path)
    count = len(task_documents(TASK))
    drawn = re.findall(rf"medtasks: [^\r\n]*\| (\d+)/{count} ", capfd.readouterr().err)
    assert {*map(int, drawn)} == {*range(count + 1)}

"""A judge in a run of the harness: asked at the end, verdicts in the harness's own numbers, no key
leaked.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from runs import Run, baseline

from medtasks.core.errors import UsageError
from medtasks.harness import run_tasks
from medtasks.judge.stub import StubJudge

TASKS = ["med_cmr_open_ltg", "kvasir_vqa_x1_level3"]
CLI = ["-m", "medtasks"]
KEY = "sk-planted-0123456789abcdef"


def judge_file(folder: Path, stub: StubJudge, **more: Any) -> Path:
    path = folder / "judge.yaml"
    judge = {"model": "stub-judge", "base_url": stub.url, **more}
    path.write_text(json.dumps({"judges": [judge], "store": str(folder / "verdicts.sqlite")}))
    return path


@pytest.mark.slow
def test_a_run_is_judged_at_its_end_as_well_as_afterwards(
    medtasks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("medtasks_vlm", "pretrained=tiny,device=cpu", TASKS)
    options = {"gen_kwargs": "max_new_tokens=8"}
    with StubJudge(latency=0.01) as stub:
        monkeypatch.setenv("MEDTASKS_JUDGE", str(judge_file(tmp_path, stub)))
        during = Run(run_tasks(*arguments, tmp_path / "during", **options))
        prompts = [json.dumps(body["messages"]) for body in stub.requests]
        assert len(prompts) == len(set(prompts)) > 5
        monkeypatch.delenv("MEDTASKS_JUDGE")
        after = Run(run_tasks(*arguments, tmp_path / "after", **options))
        assert after.manifest["judge"] == {}
        assert after.scores["med_cmr_open_ltg"]["metrics"]["open_total"]["value"] is None
        done = medtasks("judge", str(after.folder), "--judge", str(tmp_path / "judge.yaml"))
        assert done.returncode == 0, done.stderr
        assert "0 requests now" in done.stdout
    judged = Run(after.folder)
    assert judged.files() == during.files()
    assert judged.manifest["judge"] == during.manifest["judge"]
    score = during.scores["kvasir_vqa_x1_level3"]["metrics"]["judged_accuracy"]
    assert score["judged"] is not None
    assert score["incomplete"] is False


@pytest.mark.slow
def test_the_harness_s_numbers_agree_and_no_key_is_anywhere(python: Any, tmp_path: Path) -> None:
    output = tmp_path / "results"
    command = [
        "-m",
        "lmms_eval",
        "--model",
        "medtasks_baseline",
        "--model_args",
        "policy=oracle",
        "--log_samples",
    ]
    command += ["--tasks", ",".join(TASKS), "--output_path", str(output)]
    with StubJudge() as stub:
        url = stub.url
        path = judge_file(tmp_path, stub, api_key_env="PLANTED_KEY")
        environment = {"MEDTASKS_JUDGE": str(path), "PLANTED_KEY": KEY}
        done = python(*command, **environment)
        assert done.returncode == 0, done.stderr[-2000:]
        (folder,) = output.rglob("*_medtasks")
        agree(folder)
        export = folder.parent / "verdicts.jsonl"
        options = ["--judge", str(path), "--rubric", "med_cmr_medreason", "--export", str(export)]
        again = python(*CLI, "judge", str(folder), *options, **environment)
        assert again.returncode == 0, again.stderr
        agree(folder)

    refused = ["--judge", f"model=other,base_url={url},retries=0,api_key_env=PLANTED_KEY"]
    failed = python(
        *CLI, "judge", str(folder), *refused, **environment
    )  # nobody listens there any more
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    said = [text for one in (done, again, failed) for text in (one.stdout, one.stderr)]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not any(KEY in text for text in said)
    assert not any(KEY.encode() in content for content in files)


def agree(folder: Path) -> None:
    """The harness's results file says what our folder says."""
    (path,) = folder.parent.glob("*_results.json")
    results = json.loads(path.read_text(encoding="utf-8"))
    scores = Run(folder).scores
    assert scores["med_cmr_open_ltg"]["metrics"]["open_total"]["value"] is not None
    for name, one in scores.items():
        for metric, score in one["metrics"].items():
            value = "not computed" if score["value"] is None else score["value"]
            assert results["results"][name][f"{metric},medtasks"] == value, (name, metric)
            interval = results["medtasks"]["intervals"][name][metric]["interval"]
            assert interval == score["interval"], (name, metric)


def test_a_judge_that_cannot_be_reached_costs_no_inference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDTASKS_JUDGE", "model=m,base_url=http://127.0.0.1:9/v1,retries=0")
    run = baseline("oracle", TASKS, tmp_path / "run")
    assert run.manifest["judge"] == {}
    assert run.scores["med_cmr_open_ltg"]["metrics"]["open_total"][
        "reason"
    ] == "13 of 13 items await a judge".replace("13", str(len(run.samples("med_cmr_open_ltg"))))
    assert "not judged, and the run is saved without verdicts" in capsys.readouterr().out


@pytest.mark.slow
def test_wrong_usage_is_one_sentence(python: Any, tmp_path: Path) -> None:
    run = baseline("oracle", ["mi_cxr_tel_single"], tmp_path / "run")
    judge = "model=m,base_url=http://127.0.0.1:9/v1"
    (tmp_path / "no.yaml").write_text("judges: 3")
    empty = tmp_path / "empty"
    empty.mkdir()
    wrong = {
        (str(run.folder), "--judge", judge): "no task of this run is judged",
        (str(run.folder), "--judge", judge, "--rubric", "nonsense"): "rubric 'nonsense' is unknown",
        (
            str(run.folder),
            "--judge",
            judge,
            "--rubric",
            "med_cmr_open",
        ): "is for no task of this run",
        (str(run.folder), "--judge", "nowhere.yaml"): "cannot be read",
        (str(run.folder), "--judge", str(tmp_path / "no.yaml")): "must be a list of judges",
        (str(run.folder), "--judge", f"{judge},colour=red"): "colour",
        (str(run.folder), "--judge", "model=m,base_url=ftp://x"): "base_url",
        (str(run.folder), "--judge", judge, "--judge", judge): "two judges are called 'm'",
        (str(empty), "--judge", judge): "contains no result directory",
    }
    for arguments, sentence in wrong.items():
        done = python(*CLI, "judge", *arguments)
        assert done.returncode in (1, 2), arguments
        assert sentence in done.stderr, (arguments, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.slow
def test_a_rubric_without_a_response_to_judge_shows_no_agreement(
    medtasks: Any, tmp_path: Path
) -> None:
    tasks = ["medstreambench_future_streaming"]
    run = Run(run_tasks("medtasks_baseline", "policy=oracle", tasks, tmp_path / "run", limit=5))
    with StubJudge() as stub:
        panel = [f"--judge=model={name},base_url={stub.url}" for name in ("m", "n")]
        done = medtasks("judge", str(run.folder), *panel)
    assert "medstream_rubric: 0 of 0 responses judged" in done.stdout
    assert "agreement" not in done.stdout


def test_a_rubric_that_nobody_knows_stops_the_run_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "judge.yaml"
    judge = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    path.write_text(json.dumps({"judges": [judge], "rubrics": ["nonsense"]}))
    monkeypatch.setenv("MEDTASKS_JUDGE", str(path))
    with pytest.raises(UsageError, match="rubric 'nonsense' is unknown"):
        baseline("oracle", ["med_cmr_open_ltg"], tmp_path / "run")


def test_a_moved_run_is_judged_without_the_harness_s_file(tmp_path: Path, capsys: Any) -> None:
    from medtasks.cli.judge import judge

    run = baseline("oracle", ["med_cmr_open_ltg"], tmp_path / "run")
    moved = tmp_path / "elsewhere"
    shutil.copytree(run.folder, moved)
    with StubJudge() as stub:
        judge(moved, [f"model=stub-judge,base_url={stub.url}"], store=tmp_path / "v")
    assert Run(moved).scores["med_cmr_open_ltg"]["metrics"]["open_total"]["value"] == 100.0
    said = capsys.readouterr().out
    assert "the harness's results file has the same scores" not in said
    assert "judged by a stub" in said

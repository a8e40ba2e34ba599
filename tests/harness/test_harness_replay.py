"""Responses made elsewhere, scored through the harness: the same answers give the same scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.rank.compare import compare_runs
from medtasks.leaderboard.verify.run_notes import run_notes
from medtasks.leaderboard.verify.scored_run import scored_run
from runs import Run, baseline

from medtasks.benchmarks.documents import task_documents
from medtasks.harness import run_tasks
from medtasks.python_api.scoring import score
from medtasks.scoring.run_folder import read_run
from medtasks.scoring.verified_runs import scored_record

TASKS = ["kvasir_vqa_x1_level2", "mi_cxr_tel"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return baseline("noisy_oracle,accuracy=0.5", TASKS, tmp_path_factory.mktemp("original"))


def sample_lines(folder: Path) -> list[dict[str, Any]]:
    lines = []
    for path in sorted((folder / "samples").glob("*.jsonl")):
        lines += map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return lines


def responses(run: Run) -> list[dict[str, str]]:
    return [
        {"sample_id": line["sample_id"], "response": line["responses"][0]}
        for line in sample_lines(run.folder)
    ]


def test_responses_to_our_prompts_give_the_same_bytes(original: Run, tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in reversed(responses(original))), encoding="utf-8"
    )
    replayed = Run(
        run_tasks("medtasks_replay", f"path={path},prompts=ours", TASKS, tmp_path / "out")
    )
    assert replayed.files() == original.files()


def test_replayed_and_imported_responses_say_the_same(original: Run, tmp_path: Path) -> None:
    task = "mi_cxr_tel"
    path = tmp_path / "responses.jsonl"
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in responses(original)), encoding="utf-8"
    )
    run = Run(run_tasks("medtasks_replay", f"path={path}", [task], tmp_path / "out"))
    replayed = scored_run(run.folder)
    score(path, task, model="same", out=tmp_path / "scored")
    imported = scored_run(tmp_path / "scored")

    compared = compare_runs(replayed, imported)
    assert {(line.comparable, line.pair.difference) for line in compared.lines if line.pair} == {
        ("yes*", 0)
    }
    assert replayed.entries[task].signatures == imported.entries[task].signatures
    assert replayed.entries[task].scores == imported.entries[task].scores
    for folder in (run.folder, tmp_path / "scored"):
        assert all(line["prompt"] == "" for line in sample_lines(folder))
    with_prompts = compare_runs(replayed, scored_run(original.folder), task=task)
    assert all("prompt unknown instead of " in line.unlike[0] for line in with_prompts.lines)


def test_responses_that_were_cut_off_are_counted_shown_and_named_with_the_option(
    original: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "finish_reason": "stop"} for row in responses(original)]
    level2 = {document["sample_id"] for document in task_documents("kvasir_vqa_x1_level2")}
    first, second, *_ = (row for row in rows if row["sample_id"] in level2)
    first["finish_reason"], second["finish_reason"] = "length", "length"
    del rows[-1]["finish_reason"]  # of MI-CXR
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = Run(run_tasks("medtasks_replay", f"path={path},prompts=ours", TASKS, tmp_path / "out"))

    counts = {name: facts["finish"] for name, facts in run.manifest["tasks"].items()}
    assert counts["kvasir_vqa_x1_level2"] == {"length": 2, "stop": len(level2) - 2}
    assert sum(facts.get("unknown", 0) for facts in counts.values()) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"cut off at the token limit: {2 / len(level2):.0%} of kvasir_vqa_x1_level2" in said
    assert (
        "warning: answers after the limit of 4096 tokens are lost; raise --gen_kwargs max_new_tokens"
        in said
    )
    assert "cut off at the token limit: unknown, the back-end does not say (mi_cxr_tel" in said

    again = scored_record(*read_run(run.folder), own=True, whole=True)
    assert again.manifest.tasks["kvasir_vqa_x1_level2"].finish == counts["kvasir_vqa_x1_level2"]
    notes = [*run_notes(again.manifest, {**again.tasks, **again.groups})]
    assert (
        f"kvasir_vqa_x1_level2: {2 / len(level2):.0%} of the responses were cut off at the token limit"
        in notes
    )

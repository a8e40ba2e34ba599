"""Responses made elsewhere, scored through the harness: the same answers give the same scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import Run, baseline

from medtasks.harness import run_tasks

TASKS = ["kvasir_vqa_x1_level2", "mi_cxr_tel"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return baseline("noisy_oracle,accuracy=0.5", TASKS, tmp_path_factory.mktemp("original"))


def responses(run: Run) -> list[dict[str, str]]:
    files = sorted((run.folder / "samples").glob("*.jsonl"))
    lines = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return [{"sample_id": line["sample_id"], "response": line["responses"][0]} for line in lines]


def test_replayed_responses_give_the_same_bytes(original: Run, tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in reversed(responses(original))), encoding="utf-8")
    replayed = Run(run_tasks("medtasks_replay", f"path={path}", TASKS, tmp_path / "out"))
    assert replayed.files() == original.files()


def test_a_missing_response_stops_the_run(original: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in responses(original)[1:]), encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        run_tasks("medtasks_replay", f"path={path}", TASKS, tmp_path / "out")
    assert stopped.value.code == 1
    assert responses(original)[0]["sample_id"] in capsys.readouterr().err

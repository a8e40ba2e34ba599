"""Medico 2026, subtask 2: both files, checked against the challenge's description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import TEAM, Command, Rows, explained_responses, prepare, saved_run, write_release
from datasets import Dataset

from medtasks_challenges import kvasir_rows

TEXT = {"type": "string"}
LINE_OF_TASK_2 = {
    "type": "object",
    "additionalProperties": False,
    "required": ["val_id", "img_id", "question", "answer", "textual_explanation"],
    "properties": {
        "val_id": {"type": "integer", "minimum": 0, "maximum": 1499},
        "img_id": TEXT,
        "question": TEXT,
        "answer": TEXT,
        "textual_explanation": {"type": "string", "pattern": r"\S"},
        "visual_explanation": {"type": "array"},
        "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
    },
}
"""README.md of simula/MediaEval-Medico-2026@f722ad2, "Submission Format"."""


def lines_of(folder: Path) -> Rows:
    """The objects of ``submission_task2.jsonl``, by the rules of the organisers' validator."""
    objects = []
    for line in (folder / "submission_task2.jsonl").read_text(encoding="utf-8").splitlines():
        if line.strip():
            entry = json.loads(line)
            assert "val_id" in entry
            objects.append(entry)
    assert len(objects) == 1500
    script: dict[str, Any] = {}
    exec((folder / "submission_task2.py").read_text(encoding="utf-8"), script)
    assert isinstance(script["SUBMISSION_INFO"], dict)
    assert script["SUBMISSION_INFO"] == TEAM
    return objects


@pytest.mark.usefixtures("data")
def test_the_files_of_subtask_2_have_the_fields_of_the_description(
    explained: Path, team: Path, command: Command, tmp_path: Path, release_rows: Rows
) -> None:
    printed = command("medico-2026-2", explained, "--team", team, "-o", tmp_path / "out")
    assert "confidence_score: 750 stated, 0 invalid and left out" in printed
    lines = lines_of(tmp_path / "out")
    # as the README of the challenge selects the rows
    asked = (
        Dataset.from_list(release_rows)
        .filter(lambda row: row["complexity"] == 1)
        .shuffle(seed=42)
        .select(range(1500))
    )
    for val_id, (row, line) in enumerate(zip(asked, lines, strict=True)):
        jsonschema.validate(line, LINE_OF_TASK_2)
        assert (line["val_id"], line["img_id"]) == (val_id, row["img_id"])
        assert (line["question"], line["answer"]) == (row["question"], row["answer"])
        assert line["textual_explanation"] == f"Sign {val_id}: é."
        assert line.get("confidence_score") == (0.75 if val_id % 2 == 0 else None)


@pytest.mark.usefixtures("data")
def test_answers_come_from_the_run_of_subtask_1_if_it_is_named(
    explained: Path,
    half_right: Path,
    predictions: dict[str, Any],
    team: Path,
    command: Command,
    tmp_path: Path,
) -> None:
    # two rows have the same image and question, and the same answer
    answers = {}
    for row in predictions["predictions"]:
        answers[row["img_id"], row["question"]] = row["answer"]
    arguments = ("--answers", half_right, "--team", team, "-o", tmp_path / "out")
    printed = command("medico-2026-2", explained, *arguments)
    wrong_task = ("--answers-task", "none", "--team", team, "-o", tmp_path / "second")
    with pytest.raises(SystemExit, match="has no task none, only .*with --answers-task"):
        command("medico-2026-2", explained, "--answers", half_right, *wrong_task)
    shared = differing = 0
    for line in lines_of(tmp_path / "out"):
        answer = answers.get((line["img_id"], line["question"]))
        shared += answer is not None
        differing += "Two small" in line["answer"]
        assert answer in (None, line["answer"])
    assert shared > 1000
    assert f"{differing:,} explanations were given for another answer" in printed


@pytest.mark.usefixtures("data")
def test_a_reply_without_explanation_is_named_and_stated_in_words(
    team: Path, command: Command, tmp_path: Path
) -> None:
    rows = explained_responses()
    rows[0]["response"] = '{"answer": "One polyp."}'
    rows[1]["response"] = "One polyp."
    rows[2]["response"] = '{"answer": "One.", "explanation": "Round.", "confidence": 75}'
    run = saved_run(rows, "medico_2026_explained", tmp_path)
    arguments = ("medico-2026-2", run, "--team", team, "-o", tmp_path / "out")
    named = (
        f"{rows[0]['sample_id']}: status no_explanation; {rows[1]['sample_id']}: status no_answer"
    )
    with pytest.raises(SystemExit, match=named):
        command(*arguments)
    printed = command(*arguments, "--allow-missing")
    assert "2 missing answers, stated in words:" in printed
    assert f"748 stated, 1 invalid and left out ({rows[2]['sample_id']})" in printed
    first, second, third, *_ = lines_of(tmp_path / "out")
    assert first["answer"] == "One polyp."
    assert first["textual_explanation"] == "No explanation was given."
    assert second["answer"] == "No answer was given."
    assert "confidence_score" not in third


def test_rows_that_were_left_out_are_refused(
    release_rows: Rows,
    team: Path,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "release").mkdir()
    write_release(tmp_path / "release", release_rows, pictures=19)
    done = prepare(tmp_path / "release", tmp_path / "data", "--allow-missing-media")
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    rows = []
    for document in kvasir_rows.subtask2.documents():
        rows.append({"sample_id": document["sample_id"], "response": document["ideal_response"]})
    run = saved_run(rows, "medico_2026_explained", tmp_path)
    with pytest.raises(SystemExit, match="95 rows were left out when the data were prepared"):
        command("medico-2026-2", run, "--team", team, "-o", tmp_path / "out")

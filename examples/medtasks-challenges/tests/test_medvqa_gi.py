"""MEDVQA-GI 2026: the same file as Medico's, with the split's rows and two digits."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from conftest import Command, saved_run
from medtasks.api import DataError, Release
from test_medico_predictions import PREDICTIONS_1

from medtasks_challenges import medvqa_gi


def test_the_file_has_the_rows_in_the_order_of_the_split_and_two_digits(
    team: Path, command: Command, tmp_path: Path
) -> None:
    rows = []
    for number, document in enumerate(medvqa_gi.rows.documents()):
        response = document["target"] if number % 3 else "It is a picture of something else."
        rows.append({"sample_id": document["sample_id"], "response": response})
    run = saved_run(rows, "medvqa_gi_2026", tmp_path)
    out = tmp_path / "predictions_1.json"
    command("gi-2026-1", run, "--team", team, "-o", out)
    content = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(content, PREDICTIONS_1)
    split = tmp_path / "split"
    split.mkdir()
    medvqa_gi.mini(split)
    questions = [record.question for record in medvqa_gi.read(Release(split, keep=split / "kept"))]
    assert [row["question"] for row in content["predictions"]] == questions
    for name, value in content["public_scores"].items():
        assert value is None or value == round(value, 2), name
    assert 0 < content["public_scores"]["rouge1"] < 1
    printed = command("score", "gi-2026-1", out)
    assert f"rouge1 {content['public_scores']['rouge1']:.2f} [" in printed

    first, second, *_ = content["predictions"]
    edited = tmp_path / "edited.json"
    for entry, change, expected in (
        (second, {"index": True}, "field `index` of prediction 1 is True, expected 1;"),
        (first, {"answer": None}, "field `answer` of prediction 0 is None, expected a text;"),
        (content, {"public_scores": [1]}, r"field `public_scores` is \[1\], expected an object;"),
    ):
        intact = dict(entry)
        entry.update(change)
        edited.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(SystemExit, match=expected):
            command("score", "gi-2026-1", edited)
        entry.update(intact)


def test_options_of_another_challenge_are_refused(command: Command, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="leave out --ground-truth and --judge-scores"):
        command("score", "gi-2026-1", tmp_path / "x.json", "--ground-truth", tmp_path / "y.json")


def test_a_wrong_row_is_named(tmp_path: Path) -> None:
    row = {"img_id": "x", "question": "Which?", "image": "1.png"}
    (tmp_path / "validation.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError, match="validation.jsonl, line 1: field `answer` is missing"):
        medvqa_gi.read(Release(tmp_path))

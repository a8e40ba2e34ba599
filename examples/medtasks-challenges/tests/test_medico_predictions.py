"""Medico 2026, subtask 1: the file as the organisers' script writes it, and its public scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sacrebleu
from conftest import TEAM, Command, Rows, saved_run
from datasets import Dataset
from rouge_score.rouge_scorer import RougeScorer

from medtasks_challenges import kvasir_rows

TEXT = {"type": "string"}
AMOUNT = {"type": ["number", "null"]}
PREDICTIONS_1 = {
    "type": "object",
    "additionalProperties": False,
    "required": ["submission_info", "public_scores", "predictions", "total_time", "time_per_item"]
    + ["memory_used_mb", "model_memory_mb", "gpu_name", "debug"],
    "properties": {
        "submission_info": {
            "type": "object",
            "additionalProperties": False,
            "required": list(TEAM),
            "properties": {
                **dict.fromkeys(TEAM, TEXT),
                "Contact_emails": {"type": "array", "items": TEXT, "minItems": 1},
            },
        },
        "public_scores": {
            "type": "object",
            "additionalProperties": False,
            "required": ["bleu", "rouge1", "rouge2", "rougeL", "meteor"],
            "properties": {
                **dict.fromkeys(
                    ("bleu", "rouge1", "rouge2", "rougeL"),
                    {"type": "number", "minimum": 0, "maximum": 1},
                ),
                "meteor": AMOUNT,  # null without WordNet
            },
        },
        "predictions": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["index", "img_id", "question", "answer"],
                "properties": {
                    "index": {"type": "integer"},
                    **dict.fromkeys(("img_id", "question", "answer"), TEXT),
                },
            },
        },
        "total_time": AMOUNT,
        "time_per_item": AMOUNT,
        "memory_used_mb": AMOUNT,
        "model_memory_mb": AMOUNT,
        "gpu_name": {"type": ["string", "null"]},
        "debug": {"type": "object", "required": ["packages", "system"]},
    },
}
"""What ``submission_task1.py`` writes: SushantGautam/MedVQA@0aa9589."""


def test_the_file_of_subtask_1_is_what_the_organisers_script_writes(
    predictions: dict[str, Any], release_rows: Rows
) -> None:
    jsonschema.validate(predictions, PREDICTIONS_1)
    asked = Dataset.from_list(release_rows).shuffle(seed=42).select(range(1500))
    for index, (row, prediction) in enumerate(zip(asked, predictions["predictions"], strict=True)):
        expected = (index, row["img_id"], row["question"])
        assert tuple(prediction.values())[:3] == expected
    assert predictions["submission_info"] == TEAM
    assert (predictions["total_time"], predictions["time_per_item"]) == (150.0, 0.1)
    assert predictions["gpu_name"] is None


def test_the_public_scores_are_those_of_the_reference_libraries(
    predictions: dict[str, Any], release_rows: Rows
) -> None:
    asked = Dataset.from_list(release_rows).shuffle(seed=42).select(range(1500))
    references = list(asked["answer"])
    answers = [prediction["answer"] for prediction in predictions["predictions"]]
    scores = predictions["public_scores"]
    bleu = sacrebleu.corpus_bleu(answers, [references], smooth_method="none")
    assert scores["bleu"] == round(bleu.score / 100, 4)
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = RougeScorer(names, use_stemmer=False)
    totals = dict.fromkeys(names, 0.0)
    for reference, answer in zip(references, answers, strict=True):
        for name, score in scorer.score(reference, answer).items():
            totals[name] += score.fmeasure
    for name in names:
        assert scores[name] == round(totals[name] / 1500, 4)
    assert scores["meteor"] is None or 0.4 < scores["meteor"] < 0.9


@pytest.mark.usefixtures("data")
def test_the_file_is_scored_again_and_false_scores_are_named(
    predictions: dict[str, Any], command: Command, tmp_path: Path
) -> None:
    bleu = predictions["public_scores"]["bleu"]
    predictions["public_scores"]["rouge1"] = 0.99
    file = tmp_path / "predictions_1.json"
    file.write_text(json.dumps(predictions), encoding="utf-8")
    printed = command("score", "medico-2026-1", file)
    assert f"bleu {bleu:.4f} [" in printed
    assert "rouge1: the file states 0.99, computed 0." in printed
    assert printed.count("the file states") == 1

    swapped = predictions["predictions"]
    swapped[3], swapped[4] = swapped[4], swapped[3]
    file.write_text(json.dumps(predictions), encoding="utf-8")
    with pytest.raises(SystemExit, match="field `index` of prediction 3 is 4, expected 3;"):
        command("score", "medico-2026-1", file)


@pytest.mark.usefixtures("data")
def test_missing_answers_are_named_and_written_only_if_that_is_allowed(
    half_right: Path, team: Path, command: Command, tmp_path: Path
) -> None:
    rows: Rows = []
    for document in kvasir_rows.subtask1.documents():
        rows.append({"sample_id": document["sample_id"], "response": document["target"]})
    failed, empty = rows[7]["sample_id"], rows[9]["sample_id"]
    rows[7]["response"] = None
    rows[9]["response"] = "<think>So many polyps.</think>"
    unasked = rows.pop(11)["sample_id"]
    run = saved_run(rows, "kvasir_vqa_x1_medico2025", tmp_path)
    out = tmp_path / "out.json"
    arguments = ("medico-2026-1", run, "--team", team, "-o", out)
    with pytest.raises(SystemExit, match="answers are missing for 3 of 1,500 rows") as refused:
        command(*arguments)
    for sample_id in (failed, empty, unasked):
        assert sample_id in str(refused.value)
    assert not out.exists()

    printed = command(*arguments, "--allow-missing")
    assert "3 missing answers, written as empty texts, which score 0:" in printed
    for sample_id in (failed, empty, unasked):
        assert f"  {sample_id}: " in printed
    content = json.loads(out.read_text(encoding="utf-8"))
    empty_indices = [row["index"] for row in content["predictions"] if not row["answer"]]
    assert empty_indices == [7, 9, 11]
    assert content["public_scores"]["rouge1"] == round(1497 / 1500, 4)


def test_fewer_rows_than_the_challenge_has_are_refused(
    team: Path, command: Command, half_right: Path, tmp_path: Path
) -> None:
    # MEDTASKS_DATA is mini here
    with pytest.raises(SystemExit, match="have 79 of the challenge's rows, expected 1,500"):
        command("medico-2026-1", half_right, "--team", team, "-o", tmp_path / "out.json")

"""Medico 2026: both files, checked against the organisers' scripts, and the public scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sacrebleu
from conftest import TEAM, Command, Rows, explained_responses, prepare, saved_run, write_release
from datasets import Dataset
from rouge_score.rouge_scorer import RougeScorer

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


@pytest.fixture
def predictions(written: Path) -> dict[str, Any]:
    """The content of the file of subtask 1."""
    content: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    return content


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
    with pytest.raises(SystemExit, match="field `index` of prediction 3 is '4', expected '3'"):
        command("score", "medico-2026-1", file)


@pytest.mark.usefixtures("data")
def test_missing_answers_are_named_and_written_only_if_that_is_allowed(
    half_right: Path, team: Path, command: Command, tmp_path: Path
) -> None:
    from medtasks_challenges import kvasir_rows

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


def test_rows_that_were_left_out_are_refused(
    release_rows: Rows,
    team: Path,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from medtasks_challenges import kvasir_rows

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
    named = f"{rows[0]['sample_id']}: no_explanation; {rows[1]['sample_id']}: status no_answer"
    with pytest.raises(SystemExit, match=named):
        command(*arguments)
    printed = command(*arguments, "--allow-missing")
    assert "2 missing answers, stated in words:" in printed
    assert "748 stated, 1 invalid and left out" in printed
    first, second, third, *_ = lines_of(tmp_path / "out")
    assert first["answer"] == "One polyp."
    assert first["textual_explanation"] == "No explanation was given."
    assert second["answer"] == "No answer was given."
    assert "confidence_score" not in third


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"Country": None}, "field `Country` is None"),
        ({"Contact_emails": []}, "field `Contact_emails` is []"),
        ({"Teamname": "x"}, "field `Teamname` is 'x'"),
        ({"measured": {"total_time": -1}}, "field `measured.total_time` is -1"),
    ],
)
def test_a_wrong_team_file_is_refused(
    change: dict[str, Any], expected: str, command: Command, tmp_path: Path, half_right: Path
) -> None:
    file = tmp_path / "team.json"
    file.write_text(json.dumps({**TEAM, **change}), encoding="utf-8")
    with pytest.raises(SystemExit) as refused:
        command("medico-2026-1", half_right, "--team", file, "-o", tmp_path / "out.json")
    assert f"team.json: {expected}" in str(refused.value)

"""Predictions for releases that lack rows of a task, repeat rows, or come without pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.verify.run_notes import run_notes
from medtasks.leaderboard.verify.scored_run import scored_run
from release_rows import med_cmr_row, single_turn_row, streaming_row
from typer.testing import CliRunner

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.med_cmr.records import FILES, prepare_med_cmr
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.cli.app import app
from medtasks.core.errors import DataError, NoRowsError
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.scoring.run_record import RunRecord


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of prepared data, empty."""
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def predictions(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(folder: Path, task: str, rows: list[dict[str, Any]]) -> RunRecord:
    return score_predictions(PredictionFile(predictions(folder, rows), "jsonl", task))


def prepare_two_dimensions(folder: Path) -> list[dict[str, Any]]:
    """Prepare Med-CMR with rows of two dimensions, all multiple choice; predictions for them, half
    of them right.
    """
    rows = [
        med_cmr_row(index=number, task=task, question=f"Which is number {number}?")
        for number, task in enumerate(["Small-object Detection"] * 3 + ["Causal Reasoning"] * 3)
    ]
    opened = [med_cmr_row(index=9, answer="A nodule.", **dict.fromkeys("ABCDE"))]
    for name, content in zip((FILES["mcq"], FILES["open"]), (rows, opened), strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    prepare_med_cmr(str(folder), references_only=True)
    return [
        {"sample_id": f"mcq-{number}", "response": "B" if number % 2 else "A"}
        for number in range(6)
    ]


def test_a_group_is_scored_without_the_tasks_that_the_release_has_no_rows_for(
    tmp_path: Path,
) -> None:
    run = scored(tmp_path, "med_cmr_mcq", prepare_two_dimensions(tmp_path / "release"))
    assert sorted(run.tasks) == ["med_cmr_mcq_cr", "med_cmr_mcq_sod"]
    group = run.groups["med_cmr_mcq"]
    assert (group.items, group.metrics["accuracy"].value) == (6, 0.5)
    lacking = tuple(f"med_cmr_mcq_{name}" for name in ("fdd", "su", "tp", "ltg", "msi"))
    assert group.without == lacking
    (problem,) = run.manifest.problems
    assert problem.startswith(
        f"not scored: {', '.join(lacking)}, because the prepared data of med_cmr have no rows"
    )
    assert run.results["groups"]["med_cmr_mcq"]["without"] == [*lacking]


def test_the_command_says_what_a_group_s_score_leaves_out(tmp_path: Path) -> None:
    file = predictions(tmp_path, prepare_two_dimensions(tmp_path / "release"))
    options = ["score", str(file), "--task", "med_cmr_mcq", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, options, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    assert (
        "(without med_cmr_mcq_fdd, med_cmr_mcq_su, med_cmr_mcq_tp, med_cmr_mcq_ltg and 1 more)"
        in done.output
    )
    again = scored_run(tmp_path / "run")
    assert "med_cmr_mcq_msi" in again.scores["med_cmr_mcq"].without
    notes = [*run_notes(again.manifest, again.scores)]
    assert any(note.startswith("med_cmr_mcq: scored without med_cmr_mcq_fdd") for note in notes)
    assert not again.complete["med_cmr_mcq"]


def test_a_group_of_which_a_task_has_no_prediction_says_so(tmp_path: Path) -> None:
    rows = prepare_two_dimensions(tmp_path / "release")
    run = scored(tmp_path, "med_cmr_mcq", rows[:3])
    assert "med_cmr_mcq_cr" in run.groups["med_cmr_mcq"].without


def test_a_complete_group_leaves_nothing_out(tmp_path: Path) -> None:
    run = scored(tmp_path, "med_cmr_mcq_sod", prepare_two_dimensions(tmp_path / "release")[:3])
    assert "without" not in json.dumps(run.results)


def test_a_task_without_rows_is_refused_alone(tmp_path: Path) -> None:
    rows = prepare_two_dimensions(tmp_path / "release")
    with pytest.raises(
        NoRowsError, match="the prepared data of med_cmr have no rows for this task"
    ):
        scored(tmp_path, "med_cmr_mcq_msi", rows)


def test_a_group_without_any_row_is_refused(tmp_path: Path) -> None:
    prepare_summaries(tmp_path)
    with pytest.raises(NoRowsError, match="the prepared data of mi_cxr have no rows"):
        scored(tmp_path, "mi_cxr_tel", [{"sample_id": "tel-1", "response": "A"}])


def test_a_release_without_present_items_is_scored(tmp_path: Path) -> None:
    rows = [
        single_turn_row(sample_id="past"),
        single_turn_row(sample_id="next", temporal_mode="future"),
        streaming_row(sample_id="stream"),
        streaming_row("proactive", sample_id="alert"),
    ]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "cholec80.jsonl").write_text("\n".join(map(json.dumps, rows)))
    prepare_medstream(str(tmp_path / "records"), references_only=True)
    run = scored(tmp_path, "medstreambench", [{"sample_id": "past", "response": "dissection"}])
    assert run.groups["medstreambench"].metrics["content"].value == 1.0
    assert run.groups["medstreambench"].without[0] == "medstreambench_present"


CHOICES = {
    "A": "Edema worsens.",
    "B": "Edema improves.",
    "C": "Opacity resolves.",
    "D": "No change.",
    "E": "None.",
}


def mi_cxr_row(number: int) -> dict[str, Any]:
    """A made-up GTS row."""
    patient = f"p1000000{number}"
    images = {
        f"T{visit}": f"files/p10/{patient}/s0000000{visit}/0000000{visit}-00000000-00000000-00000000-00000000.jpg"
        for visit in range(1, 6)
    }
    return {
        "q_id": number,
        "group_type": "GTS",
        "qtype": "single_entity_interval_summary",
        "images": images,
        "question": "Which statement is true?",
        "choices": CHOICES,
        "answer": "ABCDE"[number % 5],
    }


def prepare_summaries(folder: Path) -> None:
    """Prepare MI-CXR with five GTS rows, the last of which has no summary."""
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(mi_cxr_row(number)) + "\n" for number in range(5)))
    prepare_mi_cxr([rows], references_only=True)


def test_summaries_are_scored_without_pictures(tmp_path: Path) -> None:
    prepare_summaries(tmp_path)
    answers = [
        {"sample_id": f"gts-{number}", "response": CHOICES["ABCD"[number]]} for number in range(4)
    ]
    run = scored(tmp_path, "mi_cxr_report", answers)
    metrics = run.tasks["mi_cxr_report"].metrics
    assert metrics["rougeL"].value == 1.0
    assert metrics["cider"].value is not None
    assert metrics["cider"].value > 0


PAIR = {"q": "What color is the abnormality? If more than one separate with ;", "a": "pink"}


def kvasir_row(img_id: str, answer: str = "pink", **changes: Any) -> dict[str, Any]:
    original = json.dumps(changes.pop("original", [PAIR]))
    row = {
        "img_id": img_id,
        "complexity": 1,
        "question": "Color?",
        "answer": answer,
        "original": original,
    }
    return {**row, **changes}


def kvasir(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepare_kvasir(str(folder / "test.jsonl"), references_only=True)


TWICE = [kvasir_row("b"), kvasir_row("b"), kvasir_row("c")]


def answer(img_id: str, response: str = "pink") -> dict[str, str]:
    return {"img_id": img_id, "question": "Color?", "response": response}


@pytest.mark.parametrize(
    "given",
    [
        [answer("b"), answer("c")],
        [answer("b"), answer("c"), answer("b")],
        [answer("b"), answer("b"), answer("b"), answer("c")],
        [
            {"sample_id": "b-35a94818", "response": "pink"},
            {"sample_id": "c-35a94818", "response": "pink"},
        ],
    ],
    ids=["one", "two", "three", "by id"],
)
def test_two_equal_rows_take_one_prediction(given: list[dict[str, str]], tmp_path: Path) -> None:
    kvasir(tmp_path, TWICE)
    run = scored(tmp_path, "kvasir_vqa_x1_level1", given)
    assert [sample.sample_id for sample in run.samples["kvasir_vqa_x1_level1"]] == [
        "b-35a94818",
        "b-35a94818#2",
        "c-35a94818",
    ]
    assert run.tasks["kvasir_vqa_x1_level1"].metrics["exact_match"].value == 1.0


def test_a_prediction_that_equal_rows_share_is_said_to_be_shared(tmp_path: Path) -> None:
    kvasir(tmp_path, TWICE)
    run = scored(tmp_path, "kvasir_vqa_x1_level1", [answer("b"), answer("c")])
    assert "1 document with the prediction of an equal earlier one: b-35a94818#2" in run.notes
    assert run.predictions["repeated"] == 1


def test_two_equal_rows_may_have_two_predictions(tmp_path: Path) -> None:
    kvasir(tmp_path, TWICE)
    run = scored(tmp_path, "kvasir_vqa_x1_level1", [answer("b"), answer("b", "red"), answer("c")])
    assert run.tasks["kvasir_vqa_x1_level1"].metrics["exact_match"].value == pytest.approx(2 / 3)


def test_rows_of_one_question_with_two_references_need_two_predictions(tmp_path: Path) -> None:
    kvasir(tmp_path, [kvasir_row("a"), kvasir_row("a", "red")])
    with pytest.raises(
        DataError, match=r"1 prediction\(s\) for img_id 'a' and question 'Color\?', expected 2"
    ):
        scored(tmp_path, "kvasir_vqa_x1_level1", [answer("a")])


def test_rows_that_share_an_id_and_differ_need_predictions_of_their_own(tmp_path: Path) -> None:
    rows = [med_cmr_row(question="Which is first?"), med_cmr_row(question="Which is second?")]
    opened = [med_cmr_row(index=9, answer="A nodule.", **dict.fromkeys("ABCDE"))]
    for name, content in zip((FILES["mcq"], FILES["open"]), (rows, opened), strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    prepare_med_cmr(str(tmp_path), references_only=True)
    run = scored(tmp_path, "med_cmr_mcq_sod", [{"sample_id": "mcq-7", "response": "B"}])
    assert [sample.sample_id for sample in run.samples["med_cmr_mcq_sod"]] == ["mcq-7"]
    assert "unanswered (not scored): mcq-7#2" in run.notes

"""Scores with intervals and coverage, and samples as far as the terms allow, arrive in Weights &
Biases.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import OTHER_ROWS, TASK, lmms_eval, other_task
from PIL import Image
from runs import baseline

from medtasks.scoring.logged_tables import (
    LoggedTable,
    sample_table,
    score_table,
    score_values,
    shown_of,
)
from medtasks.scoring.run_folder import read_run
from medtasks.scoring.run_record import RunRecord

CXR = "mi_cxr_icr"
STREAM = "medstreambench_future_streaming"


def record(task: str, output: Path) -> RunRecord:
    folder = baseline("oracle", [task], output).folder
    manifest, samples = read_run(folder)
    return RunRecord.scored(manifest, samples)


def rows_of(table: LoggedTable) -> list[dict[str, Any]]:
    return [dict(zip(table.names, row, strict=True)) for row in table.rows]


def test_a_score_has_its_interval_and_coverage(tmp_path: Path) -> None:
    run = record(TASK, tmp_path)
    score = run.tasks[TASK].metrics["accuracy"]
    assert score.interval is not None
    (row,) = [one for one in rows_of(score_table(run)) if one["metric"] == "accuracy"]
    assert (row["task"], row["value"], (row["low"], row["high"])) == (
        TASK,
        score.value,
        score.interval,
    )
    assert (row["items"], row["coverage"]) == (score.samples, 1)
    low, high = score.interval
    values = {"accuracy_low": low, "accuracy_high": high, "accuracy_coverage": 1}
    assert score_values(run) == {f"{TASK}/{name}": value for name, value in values.items()}


def test_unanswered_items_lower_the_coverage(tmp_path: Path) -> None:
    run = record("kvasir_vqa_x1_level3", tmp_path)  # its judged metric has no verdicts
    rows = {row["metric"]: row for row in rows_of(score_table(run))}
    judged = rows["judged_accuracy"]
    assert (judged["value"], judged["judged"], judged["coverage"]) == (None, 0, 0)


def test_of_credentialed_data_no_text_is_shown(tmp_path: Path) -> None:
    run = record(CXR, tmp_path)
    assert shown_of("mi_cxr") == "nothing"
    assert shown_of("package without a board") == "nothing"
    table = sample_table(run.samples[CXR], "nothing")
    assert table.names == ("sample", "extracted", "status", "accuracy")
    prompts = {sample.prompt for sample in run.samples[CXR]}
    shown = {str(value) for row in table.rows for value in row}
    assert not shown & prompts


def test_text_and_pictures_are_shown_where_the_terms_allow(tmp_path: Path) -> None:
    run = record(TASK, tmp_path)
    samples = {sample.sample_id: sample for sample in run.samples[TASK]}
    for row in rows_of(sample_table(run.samples[TASK], "text")):
        sample = samples[row["sample"]]
        assert (row["prompt"], row["reference"], row["extracted"]) == (
            sample.prompt,
            sample.target,
            sample.filtered,
        )
        assert row["responses"] == sample.responses[0]
        assert not [value for value in row.values() if isinstance(value, Image.Image)]
    for row in rows_of(sample_table(run.samples[TASK], "media")):
        pictures = [value for value in row.values() if isinstance(value, Image.Image)]
        assert len(pictures) == len(samples[row["sample"]].media)


def test_of_a_stream_the_first_frames_are_shown(tmp_path: Path) -> None:
    run = record(STREAM, tmp_path)
    table = sample_table(run.samples[STREAM], "media")
    assert [name for name in table.names if name.startswith("picture")] == [
        f"picture {n}" for n in range(1, 5)
    ]
    assert all(len(row) == len(table.names) for row in table.rows)


def tables_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The tables that W&B wrote below ``folder``, by the name before their number."""
    tables = {}
    for path in folder.rglob("*.table.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        name = path.name.rsplit("_", 2)[0]
        tables[name] = [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]
    return tables


@pytest.mark.slow
def test_a_command_logs_the_tables_of_all_its_tasks(
    python: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_text(OTHER_ROWS)
    task_file = other_task("arithmetic_of_others", tmp_path / "rows.json")
    (tmp_path / "other.yaml").write_text(task_file)
    ended = lmms_eval(
        python,
        tmp_path,
        *("--tasks", f"{TASK},arithmetic_of_others", "--include_path", str(tmp_path)),
        *("--log_samples", "--wandb_log_samples", "--wandb_args", "project=test"),
        WANDB_MODE="offline",
        WANDB_DIR=str(tmp_path),
        WANDB_SILENT="true",
    )
    assert ended.code == 0, ended.err[-2000:]
    tables = tables_in(tmp_path / "wandb")
    (score,) = tables["medtasks_scores"]
    low, high = ended.run.scores[TASK]["metrics"]["accuracy"]["interval"]
    assert (score["task"], score["metric"], score["low"], score["high"]) == (
        TASK,
        "accuracy",
        low,
        high,
    )
    logged = tables[f"{TASK}_eval_results"]
    asked = {sample["sample_id"]: sample for sample in ended.run.samples(TASK)}
    assert {row["sample"]: row["prompt"] for row in logged} == {
        name: one["prompt"] for name, one in asked.items()
    }
    (other,) = tables["arithmetic_of_others_eval_results"]
    assert other["labels"] == "2"

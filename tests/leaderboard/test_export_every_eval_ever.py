"""``medtasks export every-eval-ever``: its own validator accepts the records, which say the same numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from invented_runs import write_run_of
from release_runs import COMMIT, GOOD, GROUP, write_release, write_release_run
from typer.testing import CliRunner

from medtasks.cli.app import app
from medtasks.core.errors import UsageError

OPTIONS = ("--model", "lab/Good-7B", "--organization", "Our lab")


def export(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["export", "every-eval-ever", *map(str, arguments)])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_release_run(tmp_path / "results")
    monkeypatch.setenv("MEDTASKS_DATA", str(write_release(tmp_path / "release")))
    return folder


def test_its_own_validator_accepts_the_files(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validate = pytest.importorskip("every_eval_ever.validate")
    done = export(run, *OPTIONS, "--relationship", "first_party", "--out", tmp_path / "data")
    assert done.exit_code == 0, done.output + str(done.exception)
    monkeypatch.chdir(tmp_path)
    files = sorted(Path("data").rglob("*.json*"))
    assert [file.parent for file in files] == [Path("data/med_cmr/lab/Good-7B")] * 2
    for file in files:
        report = validate.validate_file(
            file,
            repo_path=str(file),
            available_files={str(one) for one in files},
            read_repo_file=lambda name: Path(name).read_text(encoding="utf-8"),
            run_semantic_checks=True,
        )
        assert (report.errors, report.warnings) == ([], [])


def test_the_numbers_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    types = pytest.importorskip("every_eval_ever.eval_types")
    export(run, *OPTIONS, "--out", tmp_path / "data")
    folder = tmp_path / "data" / "med_cmr" / "lab" / "Good-7B"
    record = types.EvaluationLog.model_validate_json(next(folder.glob("*.json")).read_text(encoding="utf-8"))
    written = json.loads((run / "scores.json").read_text(encoding="utf-8"))["groups"][GROUP]["metrics"]
    assert [one.evaluation_result_id for one in record.evaluation_results] == [
        f"{GROUP}.accuracy", f"{GROUP}.accuracy_dimension_mean",
    ]  # fmt: skip
    first = record.evaluation_results[0]
    interval = first.score_details.uncertainty.confidence_interval
    assert first.score_details.score == written["accuracy"]["value"]
    assert [interval.lower, interval.upper] == written["accuracy"]["interval"]
    assert interval.method == "cluster bootstrap, cluster: image"
    assert first.metric_config.additional_details["signature"].startswith("accuracy|")
    assert first.source_data.additional_details["revision"] == COMMIT
    assert record.model_info.id == "lab/Good-7B"
    lines = [json.loads(line) for line in next(folder.glob("*_samples.jsonl")).read_text(encoding="utf-8").splitlines()]
    values = [line["evaluation"] for line in lines if line["evaluation_result_id"] == f"{GROUP}.accuracy"]
    assert len(values) == written["accuracy"]["samples"] == 43
    assert sum(one["score"] for one in values) / 43 == pytest.approx(written["accuracy"]["value"])
    assert all(one["is_correct"] == (one["score"] == 1) for one in values)


def test_wrong_options_and_miniature_data_are_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("every_eval_ever")
    write_run_of(tmp_path, GOOD, [GROUP])
    for options, said in (
        (("--model", "Good", "--organization", "Our lab"), "--model Good: expected owner/name"),
        ((*OPTIONS, "--relationship", "friends"), "--relationship friends: choose from first_party"),
        (OPTIONS, "miniature data"),
    ):
        assert said in str(export(tmp_path, *options, "--out", tmp_path / "data").exception)
    assert not (tmp_path / "data").exists()


def test_without_the_package_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "every_eval_ever", None)
    done = export(tmp_path, *OPTIONS, "--out", tmp_path / "data")
    assert isinstance(done.exception, UsageError)
    assert "install it: pip install --no-deps every-eval-ever" in str(done.exception)

"""``medtasks.log``: scores and samples arrive in the trackers' own files, with what others may see."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folder_bench import OPTIONS_YAML, FolderBuilder
from PIL import Image

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.contents import forget_packages
from medtasks.core.errors import UsageError
from medtasks.python_api.trackers import _MlflowTracker
from medtasks.scoring.logged_tables import LoggedTable, sample_table

CREDENTIALED = "mi_cxr_icr"
RESPONSE = "B, I think"


def answered(task: str) -> medtasks.Run:
    """A run that gives the same response to every question."""
    rows = []
    for document in task_documents(task, media=False):
        rows.append({"sample_id": document["sample_id"], "response": RESPONSE})
    return medtasks.score(rows, task, model="a model")


@pytest.fixture
def credentialed(monkeypatch: pytest.MonkeyPatch) -> medtasks.Run:
    monkeypatch.setenv("MEDTASKS_DATA", "mini")
    return answered(CREDENTIALED)


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, shows: str) -> medtasks.Run:
    """A run on a benchmark folder that lets others see so much."""
    FolderBuilder(folder, yaml=f"{OPTIONS_YAML}shows: {shows}\n").write()
    monkeypatch.setenv("MEDTASKS_BENCHMARKS", str(folder))
    forget_packages()
    return answered("my_vqa")


def test_something_else_is_refused(credentialed: medtasks.Run) -> None:
    for tracker, name in ((json, "json"), (object(), "object")):
        with pytest.raises(UsageError, match=f"tracker is {name}, expected wandb, trackio or"):
            medtasks.log(credentialed, tracker)


def test_long_tables_are_logged_in_parts() -> None:
    table = LoggedTable(("number",), ([number] for number in range(20_001)))
    parts = {name: [*part.rows] for name, part in table.parts("t")}
    assert {name: len(rows) for name, rows in parts.items()} == {
        "t": 10_000, "t_2": 10_000, "t_3": 1
    }  # fmt: skip
    assert parts["t_3"] == [[20_000]]
    assert [name for name, _ in LoggedTable(("number",), ()).parts("t")] == ["t"]


def test_a_folder_decides_what_others_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = use(monkeypatch, tmp_path / "folder", "media")
    table = sample_table(run.whole.samples["my_vqa"], "media")
    assert "picture 1" in table.names


def test_mlflow_gets_a_picture_in_each_cell_of_a_column_of_pictures() -> None:
    tables: dict[str, dict[str, list[Any]]] = {}

    class Mlflow:
        @staticmethod
        def log_table(table: dict[str, list[Any]], name: str, run_id: str) -> None:
            tables[f"{run_id}/{name}"] = table

    picture = Image.new("L", (8, 8))
    rows = [["one", picture, 1.0], ["none", None, None]]
    _MlflowTracker(Mlflow, "run").log_table(
        "t", LoggedTable(("sample", "picture 1", "accuracy"), rows)
    )
    table = tables["run/medtasks/t.json"]
    assert [cell.size for cell in table["picture 1"]] == [(8, 8), (1, 1)]
    assert table["accuracy"] == [1.0, None]


def check_values(values: dict[str, float], run: medtasks.Run, task: str) -> None:
    """Scores, intervals and coverage are those of the run."""
    (score,) = [row for row in run.scores().arrow.to_pylist() if row["breakdown"] is None]
    expected = {"": score["value"], "_low": score["low"], "_high": score["high"], "_coverage": 1}
    for end, value in expected.items():
        assert values[f"{task}/accuracy{end}"] == pytest.approx(value)


def check_samples(rows: list[dict[str, Any]], run: medtasks.Run, task: str) -> None:
    """All samples are there with their scores; of credentialed data nothing else."""
    scores = {row["sample_id"]: row["score_accuracy"] for row in run.samples().arrow.to_pylist()}
    assert {row["sample"]: row["accuracy"] for row in rows} == scores
    for row in rows:
        if task == CREDENTIALED:
            assert row.keys() == {"sample", "extracted", "status", "accuracy"}
        else:
            assert (row["responses"], row["extracted"]) == (RESPONSE, "B")


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path))
    module = pytest.importorskip("wandb")
    yield module
    module.teardown()


@pytest.mark.slow  # starts W&B's own process
def test_wandb_has_scores_and_samples(
    wandb: Any, credentialed: medtasks.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wandb.init(project="test", dir=tmp_path) as tracker:
        (note,) = medtasks.log(credentialed, tracker)
        check_values(dict(tracker.summary), credentialed, CREDENTIALED)
        monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
        pictured = use(monkeypatch, tmp_path / "folder", "media")
        assert medtasks.log(pictured, wandb) == []
    assert note.startswith("mi_cxr: of samples only ids, extracted options, status and scores")
    tables = {}
    for path in (tmp_path / "wandb").rglob("*.table.json"):
        table = json.loads(path.read_text(encoding="utf-8"))
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
        tables[path.name.rsplit("_", 2)[0]] = rows
    check_samples(tables[f"{CREDENTIALED}_samples"], credentialed, CREDENTIALED)
    check_samples(tables["my_vqa_samples"], pictured, "my_vqa")
    # of a picture, the file has a placeholder; the artifact has the picture
    assert {row["picture 1"] for row in tables["my_vqa_samples"]} == {"Image"}
    staged = [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    pictures = [path for path in staged if path.read_bytes().startswith(b"\x89PNG")]
    assert len(pictures) == 20


@pytest.mark.slow  # writes a database
def test_trackio_has_scores_and_samples(
    credentialed: medtasks.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    trackio = pytest.importorskip("trackio")
    tracker = trackio.init(project="test", embed=False, auto_log_gpu=False)
    medtasks.log(credentialed, tracker)
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    pictured = use(monkeypatch, tmp_path / "folder", "media")
    medtasks.log(pictured, trackio, pictures=False)
    trackio.finish()
    with sqlite3.connect(tmp_path / "trackio" / "test.db") as database:
        lines = [json.loads(line) for (line,) in database.execute("SELECT metrics FROM metrics")]
    logged: dict[str, Any] = {}
    for line in lines:
        logged |= {name: value for name, value in line.items() if name not in logged}
    check_values(logged, credentialed, CREDENTIALED)
    check_samples(logged[f"{CREDENTIALED}_samples"]["_value"], credentialed, CREDENTIALED)
    rows = logged["my_vqa_samples"]["_value"]
    check_samples(rows, pictured, "my_vqa")
    assert not [name for name in rows[0] if name.startswith("picture")]


@pytest.mark.slow  # MLflow takes seconds to load
def test_mlflow_has_scores_and_samples(
    credentialed: medtasks.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as tracker:
        medtasks.log(credentialed, mlflow)
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    pictured = use(monkeypatch, tmp_path / "folder", "media")
    medtasks.log(pictured, tracker)  # has ended, but is named
    values = mlflow.get_run(tracker.info.run_id).data.metrics
    check_values(values, credentialed, CREDENTIALED)
    check_values(values, pictured, "my_vqa")
    tables = {}
    for path in (tmp_path / "mlruns").rglob("medtasks/*_samples.json"):
        table = json.loads(path.read_text(encoding="utf-8"))
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
        tables[path.stem] = rows
    check_samples(tables[f"{CREDENTIALED}_samples"], credentialed, CREDENTIALED)
    check_samples(tables["my_vqa_samples"], pictured, "my_vqa")
    assert {row["picture 1"]["type"] for row in tables["my_vqa_samples"]} == {"image"}
    assert len([*tmp_path.rglob("table_images/**/*.png")]) == 20

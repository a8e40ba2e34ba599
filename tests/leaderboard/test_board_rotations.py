"""Rotated options on the board: table, figures, LaTeX, JSON and the letters of each model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from invented_runs import MODELS, write_runs
from medtasks.leaderboard.board.board import Board
from medtasks.leaderboard.publish import publish

from medtasks.benchmarks.layouts import default_layout
from medtasks.runs.scores import RotatedLetters, Scores

GROUP = "mi_cxr_circular"
SCORES = ("accuracy", "circular_accuracy", "rotation_consistency", "letter_preference")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_runs(tmp_path_factory.mktemp("runs"), (MODELS[0], MODELS[3]), (GROUP,))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def made(folders: dict[str, Path], site: Path) -> Board:
    return publish([*folders.values()], site / "board", demonstration=True, figures=("svg",))


def test_every_score_is_in_a_table_a_figure_latex_and_json(made: Board, site: Path, folders: dict[str, Path]) -> None:
    (benchmark,) = made.benchmarks
    table = next(one for one in benchmark.tables if one.name == "option-order")
    keys = [f"{GROUP}.{metric}" for metric in SCORES]
    assert [column.key for column in table.columns][:4] == keys
    plots = {plot.name: plot for plot in benchmark.plots}
    assert plots["option-order"].columns == tuple(keys)
    assert "option-order" in {one.stem for one in (site / "board" / "figures").rglob("*.svg")}
    latex = (site / "board" / "exports" / "mi_cxr" / "option-order.tex").read_text(encoding="utf-8")
    assert all(label in latex for label in ("right in every rotation", "same option in every", "letter preference"))
    written = json.loads((site / "board" / "exports" / "board.json").read_text(encoding="utf-8"))
    assert written["benchmarks"][0]["letters"] == [one.model_dump(mode="json") for one in benchmark.letters]
    scores = json.loads((folders["Guess-1B"] / "scores.json").read_text(encoding="utf-8"))["groups"][GROUP]
    (row,) = (one for one in table.rows if one.model.startswith("guess"))
    assert [row.cells[key].value for key in keys] == [scores["metrics"][metric]["value"] for metric in SCORES]
    assert all("|" in row.cells[key].signature for key in keys)


def test_the_page_has_each_letter_with_its_interval(made: Board, site: Path, folders: dict[str, Path]) -> None:
    read = json.loads((folders["Guess-1B"] / "scores.json").read_text(encoding="utf-8"))["groups"][GROUP]
    letters = Scores.model_validate(read).letters
    assert isinstance(letters, RotatedLetters)
    (counts,) = (one for one in made.benchmarks[0].letters if one.model.startswith("guess"))
    assert counts.preference == letters.preference
    value, low, high = letters.preference["A"]
    assert low is not None
    assert high is not None
    assert low <= value <= high
    assert low < high
    shown = f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
    page = (site / "board" / "benchmark-mi_cxr.html").read_text(encoding="utf-8")
    assert f"<small>{shown}</small>" in page
    (own,) = (path for path in (site / "board").glob("model-*.html") if "guess" in path.name)
    assert shown in own.read_text(encoding="utf-8")


def test_a_plain_layout_shows_rotated_tasks_below_the_headline() -> None:
    layout = default_layout("mi_cxr")
    assert not [one for one in layout.headline if one.task.endswith("_circular")]
    shown = {(column.task, column.metric) for table in layout.tables for column in table.columns}
    assert {(GROUP, metric) for metric in SCORES} <= shown

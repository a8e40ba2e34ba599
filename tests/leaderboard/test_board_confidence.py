"""Confidences on the board: scores, reliability diagram and risk-coverage figure, LaTeX and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from invented_runs import Invented, write_runs
from medtasks.leaderboard.board.board import BenchmarkBoard, Board
from medtasks.leaderboard.figures.plots import Plane, figures_of
from medtasks.leaderboard.publish import publish

from medtasks.metrics.confidence import CONFIDENCE_NAMES

pytestmark = pytest.mark.slow

MODELS = (
    Invented("invented/Calibrated-7B", "calibrated", seed=1),
    Invented("invented/Sure-7B", "overconfident", seed=2),
    Invented("invented/Guess-1B", "uniform", seed=3),
)
GROUPS = ("mi_cxr", "mi_cxr_verbalised")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_runs(tmp_path_factory.mktemp("runs"), MODELS, GROUPS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site") / "board"


@pytest.fixture(scope="module")
def made(folders: dict[str, Path], site: Path) -> Board:
    return publish([*folders.values()], site, demonstration=True, figures=("svg",))


@pytest.fixture(scope="module")
def benchmark(made: Board) -> BenchmarkBoard:
    return made.benchmarks[0]


@pytest.mark.parametrize("group", GROUPS)
def test_the_table_has_the_scores_of_each_run(benchmark: BenchmarkBoard, folders: dict[str, Path], group: str) -> None:
    name = "confidence" if group == "mi_cxr" else f"confidence-{group}"
    table = next(one for one in benchmark.tables if one.name == name)
    assert [column.metric for column in table.columns] == list(CONFIDENCE_NAMES)
    for folder in ("Calibrated-7B", "Sure-7B"):
        scores = json.loads((folders[folder] / "scores.json").read_text(encoding="utf-8"))["groups"][group]["metrics"]
        (row,) = (one for one in table.rows if one.model.startswith(folder.lower()))
        for metric in CONFIDENCE_NAMES:
            cell = row.cells[f"{group}.{metric}"]
            assert (cell.value, [cell.low, cell.high]) == (scores[metric]["value"], scores[metric]["interval"])
            of = "stated;right=accuracy;filter=3" if "verbalised" in group else "option;right=accuracy"
            assert f"confidence-of:{of}" in cell.signature


def test_a_model_without_probabilities_is_not_listed(benchmark: BenchmarkBoard) -> None:
    for name in ("confidence", "reliability", "coverage"):
        table = next(one for one in benchmark.tables if one.name == name)
        assert not [row for row in table.rows if row.model.startswith("guess")]
    stated = next(one for one in benchmark.tables if one.name == "confidence-mi_cxr_verbalised")
    (row,) = (one for one in stated.rows if one.model.startswith("guess"))
    assert {key.rpartition(".")[2]: cell.value for key, cell in row.cells.items()} == {"confidence_given": 0.0}


def test_the_reliability_table_has_accuracy_minus_confidence(benchmark: BenchmarkBoard) -> None:
    table = next(one for one in benchmark.tables if one.name == "reliability")
    (sure,) = (one for one in table.rows if one.model.startswith("sure"))
    (calibrated,) = (one for one in benchmark.reliability if one.task == "mi_cxr" and "calibrated" in one.model)
    values = {key: cell.value for key, cell in sure.cells.items() if cell.value is not None}
    scores = next(one for one in benchmark.tables if one.name == "confidence")
    (row,) = (one for one in scores.rows if one.model == sure.model)
    assert list(values) == ["mi_cxr.accuracy.bin-15"]
    assert -values["mi_cxr.accuracy.bin-15"] == pytest.approx(row.cells["mi_cxr.ece"].value)
    empty = [cell.reason for cell in sure.cells.values() if cell.value is None]
    assert set(empty) == {"no answer with this confidence"}
    assert len(empty) == len(calibrated.reliability.bins) - 1


def test_the_page_draws_accuracy_by_confidence_and_by_coverage(made: Board) -> None:
    figures = figures_of(made, made.benchmarks[0])
    for kind in ("reliability", "coverage"):
        plane = figures[kind].shape
        assert isinstance(plane, Plane)
        assert len(plane.curves) == 2
        assert all(0 <= point.x <= 100 and 0 <= point.y <= 100 for point in plane.points)
    reliability = figures["reliability"].shape
    assert isinstance(reliability, Plane)
    ((point,),) = (points for label, _, points in reliability.curves if "Sure" in label)
    assert point.x > 94  # it is always sure
    assert point.y < point.x  # and right less often, so below the diagonal


def test_figures_latex_and_json_come_with_it(made: Board, site: Path) -> None:
    plots = {plot.name: plot.kind for plot in made.benchmarks[0].plots}
    for name, kind in (("confidence", "bars"), ("reliability", "reliability"), ("coverage", "coverage")):
        assert plots[name] == kind
        for full in (name, f"{name}-mi_cxr_verbalised"):
            assert len(list((site / "figures").rglob(f"{full}.svg"))) == 1
            latex = (site / "exports" / "mi_cxr" / f"{full}.tex").read_text(encoding="utf-8")
            assert "invented/Sure-7B" in latex
    written = json.loads((site / "exports" / "board.json").read_text(encoding="utf-8"))["benchmarks"][0]
    assert written["reliability"] == [one.model_dump(mode="json") for one in made.benchmarks[0].reliability]
    page = (site / "benchmark-mi_cxr.html").read_text(encoding="utf-8")
    assert "Line chart of accuracy by confidence" in page
    assert "99 % sure" in page
    assert "Line chart of accuracy by coverage" in page

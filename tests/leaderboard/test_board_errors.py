"""Kinds of error on the board: a table and a figure for each benchmark, LaTeX, JSON, and plain layouts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from invented_runs import MODELS, write_runs
from medtasks.leaderboard.board.board import Board
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.publish import publish

from medtasks.benchmarks.layout_columns import HARMS
from medtasks.benchmarks.layouts import check_layout, default_layout
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.catalog.spec import load_specs

pytestmark = pytest.mark.slow

GROUPS = {
    "kvasir_vqa_x1": "kvasir_vqa_x1",
    "mi_cxr": "mi_cxr",
    "med_cmr": "med_cmr_mcq",
    "medstreambench": "medstreambench",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_runs(tmp_path_factory.mktemp("runs"), (MODELS[0], MODELS[3]), tuple(GROUPS.values()))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site") / "board"


@pytest.fixture(scope="module")
def made(folders: dict[str, Path], site: Path) -> Board:
    return publish([*folders.values()], site, demonstration=True, figures=("svg",))


@pytest.mark.parametrize("name", GROUPS)
def test_every_benchmark_has_a_table_and_a_figure(name: str, made: Board, site: Path, folders: dict[str, Path]) -> None:
    (benchmark,) = (one for one in made.benchmarks if one.name == name)
    (table,) = (one for one in benchmark.tables if one.name == "errors")
    (plot,) = (one for one in benchmark.plots if one.name == "errors")
    columns = {column.key: column for column in table.columns}
    harmful = [key for key, column in columns.items() if column.remark == HARMS]
    assert harmful
    assert plot.columns[: len(harmful)] == tuple(harmful)  # apart from the others, which follow
    assert all(columns[key].remark for key in plot.columns)
    assert not any(columns[key].higher_is_better for key in plot.columns)
    assert all(columns[key].label.lower() in table.note for key in harmful)

    scores = json.loads((folders["Guess-1B"] / "scores.json").read_text(encoding="utf-8"))["groups"][GROUPS[name]]
    (row,) = (one for one in table.rows if one.model.startswith("guess"))
    for key in plot.columns:
        score, cell = scores["metrics"][columns[key].metric], row.cells[key]
        assert (cell.value, cell.items) == (score["value"], score["samples"])
        assert "|" in cell.signature

    latex = (site / "exports" / name / "errors.tex").read_text(encoding="utf-8")
    assert all(columns[key].label in latex for key in plot.columns)
    written = json.loads((site / "exports" / "board.json").read_text(encoding="utf-8"))
    (kept,) = (one for one in written["benchmarks"] if one["name"] == name)
    assert [
        one["remark"] for one in kept["tables"][[t["name"] for t in kept["tables"]].index("errors")]["columns"]
    ] == [column.remark for column in table.columns]
    assert (site / "figures" / name / "errors.svg").is_file()
    page = (site / f"benchmark-{name}.html").read_text(encoding="utf-8")
    assert f"<small>{HARMS}</small>" in page


def test_a_plain_layout_has_a_table_and_a_figure_of_the_rates_that_its_groups_name() -> None:
    layout = default_layout("mi_cxr")
    errors = get_benchmark("mi_cxr").errors
    assert errors is not None
    drawn = {plot.name: plot for plot in layout.plots}["mi-cxr-errors"]
    assert [column.metric for column in drawn.columns] == [rate.name for rate in errors.rates]
    assert "mi-cxr-errors" in {table.name for table in layout.tables}
    check_layout(replace(layout))


def test_every_declared_rate_is_named_by_a_group() -> None:
    for benchmark in all_benchmarks().values():
        declared = {rate.name for rate in benchmark.errors.rates} if benchmark.errors else set()
        named = {
            name
            for spec in load_specs().values()
            if spec.metadata.benchmark == benchmark.name
            for name in spec.metadata.pooled
        }
        assert declared <= named


def test_a_stripped_run_keeps_its_kinds_of_error_without_the_options(tmp_path: Path) -> None:
    (folder,) = write_runs(tmp_path / "whole", (MODELS[3],), ("mi_cxr",)).values()
    stripped = remove_rows(folder, tmp_path / "stripped_medtasks")
    one, other = (json.loads((run / "scores.json").read_text(encoding="utf-8")) for run in (folder, stripped))
    metrics = one["groups"]["mi_cxr"]["metrics"]
    assert metrics["interval_off_by_one_rate"]["value"] > 0
    assert other["groups"]["mi_cxr"]["metrics"] == metrics
    assert "choices" not in (stripped / "samples" / "mi_cxr_tel_single.jsonl").read_text(encoding="utf-8")

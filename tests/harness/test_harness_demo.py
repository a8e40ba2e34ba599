"""``medtasks demo``: a small vision-language model, seeing and blind, and baselines on all benchmarks; the page."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from recomputed import recomputed
from runs import Run

pytestmark = pytest.mark.slow

BLIND = " (blind)"


@dataclass(frozen=True)
class Demo:
    """What it printed to standard output and standard error, and the folder that it wrote."""

    printed: str
    errors: str
    folder: Path

    def run(self, name: str) -> Run:
        (found,) = (self.folder / name).rglob("*_medtasks")
        return Run(found)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "medtasks", "demo", "--out", str(folder / "out")]
    terminal = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=terminal, check=False)
    assert done.returncode == 0, done.stderr
    return Demo(done.stdout, done.stderr, folder / "out")


def test_it_fits_a_screen_and_says_what_to_do_next(demo: Demo) -> None:
    lines = demo.printed.splitlines()
    assert len(lines) <= 48
    commands = (str(demo.folder), "  running ", "and your model: ")  # what is copied is not wrapped
    assert max(len(line) for line in lines if not any(part in line for part in commands)) <= 80
    assert "Kvasir-VQA-x1        MI-CXR" in demo.printed
    assert "100.0 [100.0–100.0]" in demo.printed
    assert "a demonstration, not a benchmark result" in demo.printed
    assert "medtasks prepare" in demo.printed
    assert len(list(demo.folder.rglob("manifest.json"))) == 5
    assert lines[-1].startswith("and your model: ")
    assert demo.errors == ""  # libraries write at the end of a process, too


def test_seeing_beats_guessing_and_falls_behind_knowing(demo: Demo, board: dict[str, Any]) -> None:
    assert len(board["benchmarks"]) == 4
    for benchmark in board["benchmarks"]:
        key = benchmark["rankings"][0]["column"]["key"]
        (apart,) = benchmark["tables"][0]["apart"]
        rows = {row["model"].split("-")[0]: row for row in benchmark["tables"][0]["rows"]}
        order = [rows["uniform"], apart["row"], rows["tiny"], rows["noisy"], rows["oracle"]]
        guessed, blind, seeing, noisy, right = [row["cells"][key]["value"] for row in order]
        assert guessed < blind < seeing < noisy < right, benchmark["name"]
    assert "What the pictures add to tiny: " in demo.printed


@pytest.fixture(scope="module")
def board(demo: Demo) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo.folder / "leaderboard" / "exports" / "board.json").read_text())
    return found


CONFIDENCES = ("confidence", "reliability", "coverage")
COUNTED_ELSEWHERE = ("errors", "reasoning", *CONFIDENCES)
"""Tables whose scores have tests of their own: tests/runs/test_results_errors.py and test_results_confidence.py."""


def scored(
    board: dict[str, Any], without: Sequence[str] = ()
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Model, run, column and cell of every score in the board's other tables, once; a blind run is a model of its
    own."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for benchmark in board["benchmarks"]:
        for table in benchmark["tables"]:
            kind = table["name"].partition("-")[0]
            if kind in ("media", *without):  # gains of media are differences of two runs
                continue
            if not table["rows"]:  # of tasks that the demo does not run, with published figures alone
                continue
            assert len(table["rows"]) == (1 if kind in CONFIDENCES else 4), table["name"]
            rows = [*table["rows"], *(one["row"] for one in table["apart"])]
            for row, column in itertools.product(rows, table["columns"]):
                cell = row["cells"].get(column["key"])
                if cell is None:
                    continue
                place = (row["model"] + BLIND * row["blind"], column["key"])
                assert seen.setdefault(place, cell) == cell
                if seen[place] is cell:
                    (run,) = row["runs"]
                    yield place[0], run, column, cell


def test_every_score_of_the_board_follows_from_the_sample_logs(demo: Demo, board: dict[str, Any]) -> None:
    folders = {folder.name: Run(folder) for folder in demo.folder.rglob("*_medtasks")}
    count = 0
    for model, run, column, cell in scored(board, COUNTED_ELSEWHERE):
        run_of = folders[board["runs"][run]["folder"]]
        if cell["value"] is None:
            assert cell["reason"], (model, column["key"])
            continue
        tasks = run_of.manifest["groups"].get(column["task"], [column["task"]])
        lines = [line for task in tasks for line in run_of.samples(task)]
        value, interval, items = recomputed(lines, column["metric"], column["breakdown"], column["group"])
        told = (model, column["key"])
        assert (told, cell["items"]) == (told, items)
        assert (told, cell["value"]) == (told, pytest.approx(value, abs=1e-9))
        ends = None if cell["low"] is None else (cell["low"], cell["high"])
        assert (told, ends) == (told, None if interval is None else pytest.approx(interval, abs=1e-9))
        count += 1
    assert count > 1000


def test_every_number_of_the_pages_is_the_boards(demo: Demo, board: dict[str, Any]) -> None:
    cells = {(model, column["key"]): (cell, column["unit"]) for model, _, column, cell in scored(board)}
    shown = set()
    for benchmark in board["benchmarks"]:
        page = (demo.folder / "leaderboard" / f"benchmark-{benchmark['name']}.html").read_text()
        for table, slug, key, value, text in cells_of(page):
            model = slug + BLIND * table.startswith("apart-")
            if table.startswith("published-") or (model, key) not in cells:
                continue
            if table.startswith("ranks-"):
                assert text == f"{normalised_rank(model, key, cells):.2f}", (model, key)
                continue
            cell, unit = cells[model, key]
            if cell["value"] is None:
                assert value in (None, ""), (model, key)
                continue
            assert float(value or "nan") == pytest.approx(cell["value"], rel=1e-5, abs=1e-6), (model, key)
            scale, digits = {"fraction": (100, 1), "points": (1, 1), "seconds": (1, 1), "score": (1, 3)}[unit]
            printed = float(text.split()[0].replace("−", "-"))
            assert abs(printed - scale * cell["value"]) <= 0.5 * 10**-digits + 1e-9, (model, key, text)
            shown.add((model, key))
    assert shown == {place for place, (cell, _) in cells.items() if cell["value"] is not None}


def normalised_rank(model: str, key: str, cells: dict[tuple[str, str], Any]) -> float:
    """(rank - 1) / (models - 1), ties averaged, of a score of which more is better."""
    found = {name: cell for (name, column), (cell, _) in cells.items() if column == key and not name.endswith(BLIND)}
    values = {name: cell["value"] for name, cell in found.items()}
    better = sum(value > values[model] for value in values.values())
    tied = sum(value == values[model] for value in values.values()) - 1
    return (better + tied / 2) / (len(values) - 1)


def cells_of(page: str) -> Iterator[tuple[str, str, str, str | None, str]]:
    """Cells of a page's tables as (table, model, column, value to sort by, text)."""
    for table in html.fromstring(page).iter("table"):
        keys = [head.get("data-k") for head in table.iterfind("thead//th[@data-k]")]
        for row in table.iter("tr"):
            model = f"{row.get('data-m', '')}{BLIND * (row.get('class') == 'with')}"  # blind: below the model's own row
            if model:  # rounds of a stream have heads without keys
                for key, cell in zip(keys, row, strict=False):
                    yield table.get("id", ""), model, key, cell.get("data-v"), cell.text_content().strip()

"""Statements over the models of a board: correlation with size, means by type; what they leave out."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest
from made_runs import cxr, entry, page, right, run
from medtasks.leaderboard.board.board import Board
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.board.models import Described
from medtasks.leaderboard.publish import write_site

SIZES = {"one": "1B", "two": "4B", "three": "16B", "four": "64B-A3B"}
TYPES = {"one": "general", "two": "medical", "three": "general", "four": "medical"}
SHARES = {"one": 0.3, "two": 0.45, "three": 0.4, "four": 0.7}
MODELS = {f"lab/{name}": Described(size=SIZES[name], type=TYPES[name]) for name in SIZES}
RUNS = [run(name, [cxr(share, seed)]) for seed, (name, share) in enumerate(SHARES.items())]
UNKNOWN = run("unknown", [cxr(0.9, 9)])


def values(of: list[str]) -> list[float]:
    found = page(*RUNS, UNKNOWN, models=MODELS)
    cells = {row.model: row.cells["mi_cxr.accuracy"].value for row in found.tables[0].rows}
    return [cells[name] or 0.0 for name in of]


def test_the_correlation_is_pearsons_with_the_logarithm_of_the_size() -> None:
    (found,) = page(*RUNS, UNKNOWN, models=MODELS).size_correlations
    expected = statistics.correlation([math.log(size) for size in (1, 4, 16, 64)], values([*SIZES]))
    assert (found.models, found.published, found.column.key) == (4, "", "mi_cxr.accuracy")
    assert found.r == pytest.approx(expected)


def test_three_models_of_known_size_are_too_few() -> None:
    assert page(*RUNS[:3], UNKNOWN, models=MODELS).size_correlations == ()


def test_means_by_type_leave_out_models_without_a_type() -> None:
    (found,) = page(*RUNS, UNKNOWN, models=MODELS).type_means
    assert found.models == {"general": 2, "medical": 2}
    assert found.means["general"] == pytest.approx(statistics.fmean(values(["one", "three"])))
    assert found.means["medical"] == pytest.approx(statistics.fmean(values(["two", "four"])))


def test_blind_runs_are_left_out() -> None:
    blind = run("four", [cxr(0.7, 3)], blind=True)
    assert page(*RUNS[:3], blind, models=MODELS).size_correlations == ()


def test_the_rows_of_a_paper_have_a_correlation_of_their_own(tmp_path: Path) -> None:
    """Med-CMR reports r of 0.77 to 0.85; its printed table, without the swapped columns, gives what the page shows."""
    digest = run("one", [entry("med_cmr_mcq", {"accuracy": right(0.3, 1)})])
    board: Board = build_board([digest], title="Sizes", resamples=10, models=MODELS)
    found = {one.column.key: one for one in board.benchmarks[0].size_correlations}
    assert all(one.published for one in found.values())
    assert 0.5 < found["med_cmr_mcq.accuracy"].r <= 1
    assert "med_cmr_mcq_su.accuracy" not in found
    write_site(board, tmp_path)
    text = (tmp_path / "benchmark-med_cmr.html").read_text(encoding="utf-8")
    assert "Size and score" in text

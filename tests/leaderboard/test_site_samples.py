"""Samples of the comparison page: of every run that is on the board, and of every task that stands on a page."""

from __future__ import annotations

import json
from pathlib import Path

from invented_runs import MODELS, write_run_of
from medtasks.leaderboard.board.board import Board
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.publish import write_site
from medtasks.leaderboard.site.data import samples_of

TASK = "kvasir_vqa_x1_level3"


def built(root: Path) -> Board:
    return build_board(*collect([root]), title="Board", demonstration=True, resamples=20)


def test_a_folder_that_cannot_be_read_stops_no_board(tmp_path: Path) -> None:
    root = tmp_path / "results"
    write_run_of(root, MODELS[3], [TASK])
    (root / "broken_medtasks").mkdir()
    board = built(root)
    samples = samples_of(board, [root])
    (slug,) = board.models
    assert [*samples] == [("kvasir_vqa_x1", TASK, slug)]
    assert [one.folder for one in board.refused] == ["broken_medtasks"]
    write_site(board, tmp_path / "site", samples=samples)
    assert "broken_medtasks" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_samples_of_a_track_stand_on_the_page_that_names_it(tmp_path: Path) -> None:
    track = "kvasir_vqa_x1_transformed"
    root = tmp_path / "results"
    folder = write_run_of(root, MODELS[3], [track])
    tasks = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["tasks"]
    assert {one["benchmark"] for one in tasks.values()} == {track}
    board = built(root)
    assert [one.name for one in board.benchmarks] == ["kvasir_vqa_x1"]
    samples = samples_of(board, [root])
    (slug,) = board.models
    assert {*samples} == {("kvasir_vqa_x1", task, slug) for task in tasks}
    assert all(rows() for rows in samples.values())

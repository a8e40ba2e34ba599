"""Numbers of one stranger's folder: the folder is refused while it is read, and no board rests on them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, edit_json, write_run_of, write_runs
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.exports.tables import write_exports
from medtasks.leaderboard.intake.collect import collect

TASK = "kvasir_vqa_x1_level3"
Spoil = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs in a tree."""
    root = tmp_path_factory.mktemp("results")
    for model in (MODELS[0], MODELS[3]):
        write_run_of(root, model, [TASK])
    return root


@pytest.fixture
def spoiled(results: Path, tmp_path: Path) -> Callable[[Spoil], Path]:
    """The tree with the samples of one of the runs changed."""
    tree = Path(shutil.copytree(results, tmp_path / "tree"))

    def spoil(change: Spoil) -> Path:
        (path,) = (tree / "Guess-1B").rglob(f"{TASK}.jsonl")
        for line in range(path.read_bytes().count(b"\n")):  # numbers count only where there are no responses
            edit_json(path, lambda it: it.update(prompt="", responses=[]), line=line)
        edit_json(path, change, line=0)
        return tree

    return spoil


def statistics(*numbers: float) -> Spoil:
    return lambda sample: sample["statistics"].update({"rougeL": list(numbers)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (statistics(float("inf"), 1.0), "is inf, expected a finite number"),
        (statistics(1e300, 1.0), "an item's score is 1e+300, expected 0 to 1"),
        (statistics(1.0, 1e-300), "an item's score is 1e+300, expected 0 to 1"),
        (statistics(-1.0, -1.0), "an item counts -1 times, expected 0 or more"),
    ],
    ids=["endless", "huge", "counts-hardly", "counts-backwards"],
)
def test_numbers_that_no_score_can_be_refuse_their_folder_alone(
    change: Spoil, reason: str, spoiled: Callable[[Spoil], Path], tmp_path: Path
) -> None:
    digests, refused = collect([spoiled(change)])
    board = build_board(digests, refused, title="Board", demonstration=True, resamples=20)
    assert [one.name for one in board.models.values()] == [MODELS[0].name]
    assert [one.folder for one in board.refused] == ["20261101_000000_medtasks"]
    assert reason in board.refused[0].reason
    write_exports(board, tmp_path / "exports")


def test_large_and_small_numbers_of_their_own_are_taken(spoiled: Callable[[Spoil], Path]) -> None:
    digests, refused = collect([spoiled(statistics(1e-17, 1.0))])
    assert (len(digests), refused) == (2, [])


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (folder,) = write_runs(tmp_path_factory.mktemp("judged"), [MODELS[3]], ["med_cmr_open"]).values()
    return folder


@pytest.mark.parametrize("threshold", ["2.0", "-0.1", "NaN"])
def test_a_threshold_that_is_no_share_refuses_the_folder(threshold: str, judged_run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(judged_run, tmp_path / "run_medtasks"))
    path = folder / "manifest.json"
    text = path.read_text(encoding="utf-8")
    assert '"threshold": 0.99' in text
    path.write_text(text.replace('"threshold": 0.99', f'"threshold": {threshold}'), encoding="utf-8")
    digests, (refused,) = collect([folder])
    assert digests == []
    assert "threshold`" in refused.reason

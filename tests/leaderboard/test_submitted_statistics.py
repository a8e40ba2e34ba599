"""Numbers of one stranger's folder: the folder is refused while it is read, and no board rests on them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from boards import write_exports
from invented_runs import MODELS, write_run_of, write_runs
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.intake.collect import collect

TASK = "kvasir_vqa_x1_level3"
WRONG = {
    (float("inf"), 1.0): "is inf, expected a finite number",
    (1e300, 1.0): "an item's score is 1e+300, expected 0 to 1",
    (1.0, 1e-300): "an item's score is 1e+300, expected 0 to 1",
    (-1.0, -1.0): "an item counts -1 times, expected 0 or more",
}


def write_spoiled(run: Path, target: Path, numbers: tuple[float, float]) -> None:
    """A copy of the run whose first sample has these statistics; numbers count only where there are no responses."""
    (path,) = Path(shutil.copytree(run, target)).glob(f"samples/{TASK}.jsonl")
    samples = [json.loads(line) | {"prompt": "", "responses": []} for line in path.read_text("utf-8").splitlines()]
    samples[0]["statistics"]["rougeL"] = numbers
    path.write_text("".join(f"{json.dumps(one)}\n" for one in samples), encoding="utf-8")


def test_numbers_that_no_score_can_be_refuse_their_folder_alone(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "honest", MODELS[0], [TASK])
    guess = write_run_of(tmp_path / "guess", MODELS[3], [TASK])
    for place, numbers in enumerate(WRONG):
        write_spoiled(guess, tmp_path / "tree" / f"{place}_medtasks", numbers)
    runs, refused = collect([folder, tmp_path / "tree"])
    board = build_board(runs, refused, title="Board", demonstration=True, resamples=20)
    assert [one.name for one in board.models.values()] == [MODELS[0].name]
    assert [one.folder for one in board.refused] == [f"{place}_medtasks" for place in range(len(WRONG))]
    assert all(reason in one.reason for one, reason in zip(board.refused, WRONG.values(), strict=True))
    write_exports(board, tmp_path / "exports")
    write_spoiled(guess, tmp_path / "small_medtasks", (1e-17, 1.0))  # large and small numbers of their own are taken
    assert collect([tmp_path / "small_medtasks"])[1] == []


def test_a_threshold_that_is_no_share_refuses_the_folder(tmp_path: Path) -> None:
    (folder,) = write_runs(tmp_path, [MODELS[3]], ["med_cmr_open_cr"]).values()
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    assert '"threshold": 0.99' in text
    for threshold in ("2.0", "-0.1", "NaN"):
        (folder / "manifest.json").write_text(text.replace('"threshold": 0.99', f'"threshold": {threshold}'))
        runs, (refused,) = collect([folder])
        assert runs == []
        assert "threshold`" in refused.reason

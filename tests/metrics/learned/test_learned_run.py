"""Learned metrics in a run's result folder: scored from a checkpoint that is there, named where it
is absent.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from medtasks.leaderboard.intake.check import check_results
from tiny_checkpoints import tiny_bleurt

from medtasks.harness import run_tasks
from medtasks.metrics.learned.bleurt import Bleurt
from medtasks.scoring.run_folder import read_run
from medtasks.scoring.verified_runs import scored_record

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

TASK = "kvasir_vqa_x1_level1"


def test_a_checkpoint_that_is_named_scores_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tiny_bleurt(tmp_path / "bleurt")
    monkeypatch.setenv("MEDTASKS_BLEURT_MODEL", str(checkpoint))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    folder = run_tasks("medtasks_baseline", "policy=noisy_oracle,seed=1", [TASK], tmp_path / "run")
    lines = [
        json.loads(line) for line in (folder / "samples" / f"{TASK}.jsonl").read_text().splitlines()
    ]
    metric = json.loads((folder / "scores.json").read_text())["tasks"][TASK]["metrics"]["bleurt"]
    expected = Bleurt().scores([(line["filtered"], line["target"]) for line in lines])

    assert [line["scores"]["bleurt"] for line in lines] == pytest.approx(
        expected.tolist(), abs=1e-6
    )
    assert metric["value"] == pytest.approx(float(np.mean(expected)), abs=1e-6)
    assert metric["interval"][0] <= metric["value"] <= metric["interval"][1]
    assert metric["signature"].startswith("bleurt|model:")
    assert scored_record(*read_run(folder), own=True, whole=True).changes == ()


def test_absent_weights_are_named_and_nothing_is_put_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_BLEURT_MODEL", str(tmp_path / "nowhere"))
    folder = run_tasks("medtasks_baseline", "policy=oracle", [TASK], tmp_path / "run")
    metric = json.loads((folder / "scores.json").read_text())["tasks"][TASK]["metrics"]["bleurt"]
    line = json.loads((folder / "samples" / f"{TASK}.jsonl").read_text().splitlines()[0])

    assert metric["value"] is None
    assert "nowhere" in metric["reason"]
    assert line["scores"]["bleurt"] is None
    assert "bleurt" not in line["statistics"]


@pytest.mark.parametrize("field", ["scores", "statistics"])
def test_a_check_computes_submitted_values_again(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_BLEURT_MODEL", str(tiny_bleurt(tmp_path / "bleurt")))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    folder = run_tasks("medtasks_baseline", "policy=oracle", [TASK], tmp_path / "run")
    assert "LB106" not in {found.code for found in check_results([folder]).findings}
    path = folder / "samples" / f"{TASK}.jsonl"
    first, *others = path.read_text(encoding="utf-8").splitlines()
    sample = json.loads(first)
    forged = {"scores": 1.25, "statistics": [1.25, 1.0]}[field]
    sample[field]["bleurt"] = forged
    path.write_text("\n".join([json.dumps(sample), *others]) + "\n", encoding="utf-8")
    (found,) = [found for found in check_results([folder]).findings if found.code == "LB106"]
    assert found.field == f"{field}.bleurt"
    assert "1.25" in str(found)

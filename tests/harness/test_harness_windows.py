"""Video windows through the real harness: what back-ends are given, and runs on missing media."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_backend import Backend, evaluate
from release_rows import write_mini
from runs import baseline
from time_coded import read_time_code

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.mi_cxr import icr_variant, tel_single
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.catalog.spec import leaf_tasks


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[float], list[int]]]:
    """By sample id: the times that messages state, and the times (ms) that the pictures themselves
    show.
    """
    backend = Backend(lambda _: "unanswerable")
    evaluate(backend, ["medstreambench"], tmp_path_factory.mktemp("windows"))
    seen = {}
    for (_, sample_id), (turn,) in zip(backend.asked, backend.turns, strict=True):
        parts = [part for part in turn["content"] if part["type"] == "image"]
        codes = [
            code for part in parts if (code := read_time_code(np.asarray(part["url"]))) is not None
        ]
        assert len(codes) == len(parts)
        seen[sample_id] = [part["time"] for part in parts if "time" in part], codes
    assert len(seen) == len(backend.asked) == 49 + 30
    return seen


def test_no_back_end_sees_a_frame_from_after_the_window(
    recorded: dict[str, tuple[list[float], list[int]]],
) -> None:
    for document in (one for task in leaf_tasks("medstreambench") for one in task_documents(task)):
        stated, codes = recorded[document["sample_id"]]
        if document["medium"] == "video":
            assert stated == document["times"]
            assert [int(time * 1000 + 1e-6) for time in stated] == pytest.approx(codes, abs=1)
        assert codes == sorted(set(codes))
        assert codes[-1] <= document["window_end"] * 1000 + 1e-6


@pytest.mark.slow
def test_partly_missing_media_cost_coverage_and_no_score(
    medtasks: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "source"
    write_mini("medstreambench", source)
    for path in (source / "media" / "Stream_Bench" / "cholec80").rglob("*.mp4"):
        path.unlink()
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    prepare = (
        "prepare",
        "medstreambench",
        "--source",
        str(source / "records"),
        "--media",
        str(source / "media"),
    )
    done = medtasks(*prepare)
    assert done.returncode == 0, done.stderr
    assert "coverage cholec80: 0 of 13 records (0%)" in done.stdout
    assert "excluded: 14 rows (missing_media)" in done.stdout
    assert "differs: rows: 43 here, 5,419 published" in done.stdout

    scores = baseline("oracle", ["medstreambench"], tmp_path / "results").scores["medstreambench"]
    printed = capsys.readouterr().out
    assert "coverage cholec80: 0 of 13 records (0%)" in printed
    assert "coverage JIGSAWS: 6 of 6 records (100%)" in printed
    assert "coverage 43 of 58 records" in printed
    assert scores["items"] == 43
    assert scores["metrics"]["content_closed"]["value"] == 1.0
    assert "cholec80" not in scores["breakdowns"]["dataset"]


def test_a_picture_that_vanished_and_a_task_without_rows_are_one_sentence_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    write_mini("mi_cxr", source)
    prepare_mi_cxr(
        [source / "micxr_test.jsonl"], source, tmp_path / "data" / "mi_cxr"
    )  # without the variant's file
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    gone = source / task_documents("mi_cxr_tel_single")[0]["media"][0]
    gone.unlink()
    for rows, sentence in (
        (tel_single, f"{gone}.*medtasks prepare mi_cxr"),
        (icr_variant, "have no rows for this task"),
    ):
        with pytest.raises(SystemExit) as stopped:
            rows(None)  # type: ignore[arg-type]
        assert stopped.value.code == 1
        assert re.search(sentence, capsys.readouterr().err)

"""Prepared data that are damaged are not absent ones: no gold answer of a run's directory takes
their place.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forged_runs import check, each, rewritten
from invented_runs import MODELS, edit_json, write_run_of
from made_release import on_release, write_release
from medtasks.leaderboard.publish import BoardOptions, publish
from medtasks.leaderboard.verify.scored_run import scored_run

from medtasks.core.errors import DamagedDataError

TASK = "med_cmr_mcq_su"


@each
def gold_is_the_response(sample: Any) -> Any:
    return sample.model_copy(update={"target": sample.filtered})


@pytest.fixture
def honest(tmp_path: Path) -> Path:
    return on_release(write_run_of(tmp_path / "honest", MODELS[3], [TASK], mini=False))


@pytest.fixture
def forged(honest: Path, tmp_path: Path) -> Path:
    """A run whose every response is the gold answer, as it claims."""
    return rewritten(honest, tmp_path / "forged", gold_is_the_response)


@pytest.fixture
def data(honest: Path, forged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Prepared data of the release that both runs claim."""
    del honest, forged  # made before the data are those of a release
    folder = write_release(tmp_path / "data")
    monkeypatch.setenv("MEDTASKS_DATA", str(folder.parent))
    return folder


def flip(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def another_fingerprint(folder: Path) -> None:
    edit_json(folder / "manifest.json", lambda manifest: manifest.update(fingerprint="0" * 64))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a bit of a record": lambda folder: flip(
        folder / "records.jsonl", b'"answer": "B"', b'"answer": "C"'
    ),
    "a bit of the media index": lambda folder: flip(folder / "media.jsonl", b"png", b"pnf"),
    "the end of the records": lambda folder: flip(folder / "records.jsonl", b"}\n", b""),
    "no records": lambda folder: (folder / "records.jsonl").unlink(),
    "the manifest's fingerprint": another_fingerprint,
    "the manifest's benchmark": lambda folder: flip(
        folder / "manifest.json", b'"med_cmr"', b'"med_cms"'
    ),
    "the manifest's syntax": lambda folder: flip(folder / "manifest.json", b"{", b"["),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_board_stops_and_names_the_data(
    damage: str, data: Path, forged: Path, tmp_path: Path
) -> None:
    DAMAGES[damage](data)
    with pytest.raises(DamagedDataError, match=str(data)):
        publish([forged], tmp_path / "site", BoardOptions(demonstration=True))
    assert not (tmp_path / "site").exists()
    with pytest.raises(DamagedDataError, match=str(data)):
        check(forged)


@pytest.mark.slow
def test_a_board_that_was_built_before_does_not_hide_the_damage(
    data: Path, honest: Path, forged: Path, new_python: Any, tmp_path: Path
) -> None:
    build = ["-m", "medtasks", "leaderboard", "build", "--out", str(tmp_path / "site")]
    assert new_python(*build, str(honest)).returncode == 0
    before = (tmp_path / "site" / "index.html").read_bytes()
    DAMAGES["a bit of a record"](data)
    done = new_python(*build, str(honest), str(forged))
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"medtasks: {data}: records or media index have changed since they were prepared"
    )
    assert (tmp_path / "site" / "index.html").read_bytes() == before


def test_data_that_are_not_prepared_leave_runs_unverified(data: Path, honest: Path) -> None:
    shutil.rmtree(data)
    assert scored_run(honest).verification[TASK].outcome == "unverifiable"


@pytest.mark.usefixtures("data")
def test_other_data_that_are_whole_leave_runs_unverified(honest: Path) -> None:
    edit_json(
        honest / "manifest.json",
        lambda manifest: manifest["data"]["med_cmr"].update(fingerprint="a" * 64),
    )
    assert scored_run(honest).verification[TASK].outcome == "unverifiable"


FULL = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
runpy.run_module("medtasks", run_name="__main__")
"""


@pytest.mark.slow
def test_data_that_cannot_be_written_for_want_of_space_stop_a_board(
    new_python: Any, tmp_path: Path
) -> None:
    run = write_run_of(tmp_path, MODELS[3], [TASK])
    build = ["leaderboard", "build", str(run), "--demonstration", "--out", "site"]
    done = new_python("-c", FULL, *build, MEDTASKS_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert (
        "the miniature data of med_cmr cannot be written ([Errno 27] File too large" in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("data")
def test_the_claimed_gold_would_have_won(forged: Path) -> None:
    """Or the tests above show nothing."""
    assert (
        json.loads((forged / "scores.json").read_text())["tasks"][TASK]["metrics"]["accuracy"][
            "value"
        ]
        == 1.0
    )
    assert scored_run(forged).record.tasks[TASK].metrics["accuracy"].value < 1.0

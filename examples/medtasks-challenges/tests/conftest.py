"""Tests use a cache of their own, miniature data, and a made release of 1,900 rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import medtasks
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from medtasks_challenges import cli, kvasir_rows

TEAM = {
    "Participant_Names": "Ada Example, Bo Exámple",
    "Affiliations": "Example Lab",
    "Contact_emails": ["ada@example.org", "bo@example.org"],
    "Team_Name": "Examples",
    "Country": "Norway",
    "Notes_to_organizers": "",
}
MEASURED_TEAM = {**TEAM, "measured": {"total_time": 150.0}}
ATOMIC = ("How many polyps are in the image?", "What type of polyp is present?")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="session", autouse=True)
def _miniature(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("MEDTASKS_DATA", "mini")
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.delenv("MEDTASKS_SUBSET", raising=False)
        yield


@pytest.fixture(scope="session")
def release_rows() -> Rows:
    """Rows in the layout of Kvasir-VQA-x1: 1,700 of complexity 1 and 200 of complexity 2, among
    them two with the same image and question.
    """
    rows = []
    for number in range(1900):
        complexity = 2 if number % 19 < 2 else 1
        pairs = [{"q": question, "a": "x"} for question in ATOMIC[:complexity]]
        rows.append(
            {
                "img_id": f"img{number % 20:02}",
                "complexity": complexity,
                "question": f"Question {number}: how many polyps are there?",
                "answer": f"There are {number} polyps in the left half of the picture.",
                "original": json.dumps(pairs),
            }
        )
    rows[500] = {**rows[500], "img_id": rows[400]["img_id"], "question": rows[400]["question"]}
    return rows


@pytest.fixture(scope="session")
def prepared(release_rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows as prepared data."""
    folder = tmp_path_factory.mktemp("release")
    write_release(folder, release_rows)
    target = tmp_path_factory.mktemp("data")
    done = prepare(folder, target)
    assert done.returncode == 0, done.stderr
    return target


def write_release(folder: Path, rows: Rows, pictures: int = 20) -> None:
    """Write the rows, and the pictures of the first images."""
    (folder / "images").mkdir()
    for number in range(pictures):
        picture = Image.new("RGB", (16, 16), (10 * number, 0, 0))
        picture.save(folder / "images" / f"img{number:02}.jpg")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "test.jsonl").write_text(lines, encoding="utf-8")


def prepare(folder: Path, target: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Prepare a release as users do."""
    command = ["-m", "medtasks", "prepare", "kvasir_vqa_x1", "--source", str(folder), *options]
    environment = {**os.environ, "MEDTASKS_DATA": str(target)}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def data(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prepared rows, in use."""
    monkeypatch.setenv("MEDTASKS_DATA", str(prepared))
    return prepared


@pytest.fixture(scope="session")
def half_right(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on all rows that answers every second one rightly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_DATA", str(prepared))
        rows = []
        for number, document in enumerate(kvasir_rows.Rows.where("kvasir_vqa_x1").documents()):
            wrong = "Two small polyps are seen there; no others."
            response = document["target"] if number % 2 else wrong
            rows.append({"sample_id": document["sample_id"], "response": response})
        return saved_run(rows, "kvasir_vqa_x1", tmp_path_factory.mktemp("half"))


@pytest.fixture(scope="session")
def written(
    prepared: Path,
    half_right: Path,
    release_rows: Rows,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The file of subtask 1, written by the command in a process of its own."""
    folder = tmp_path_factory.mktemp("written")
    pq.write_table(pa.Table.from_pylist(release_rows), folder / "test-00000-of-00001.parquet")
    team, out = folder / "team.yaml", folder / "predictions_1.json"
    team.write_text(yaml.safe_dump(MEASURED_TEAM), encoding="utf-8")
    arguments = ["medico-2026-1", half_right, "--team", team, "-o", out, "--split", folder]
    done = subprocess.run(
        [sys.executable, "-m", "medtasks_challenges.cli", *map(str, arguments)],
        env={**os.environ, "MEDTASKS_DATA": str(prepared)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"wrote {out}: 1,500 rows" in done.stdout
    assert "null, because the team file does not state it under `measured`: mem" in done.stdout
    return out


@pytest.fixture
def predictions(written: Path) -> dict[str, Any]:
    """The content of the file of subtask 1."""
    content: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="session")
def explained(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that explains its answers to the rows of subtask 2."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_DATA", str(prepared))
        rows = explained_responses()
        return saved_run(rows, "medico_2026_explained", tmp_path_factory.mktemp("explained"))


def explained_responses() -> Rows:
    """A reply with explanation for each row of subtask 2; only even ones state a confidence."""
    rows = []
    for number, document in enumerate(kvasir_rows.subtask2.documents()):
        reply: dict[str, Any] = {"answer": document["target"], "explanation": f"Sign {number}: é."}
        if number % 2 == 0:
            reply["confidence"] = 0.75
        response = f"<think>hm</think>```json\n{json.dumps(reply)}\n```"
        rows.append({"sample_id": document["sample_id"], "response": response})
    return rows


def saved_run(rows: Rows, task: str, folder: Path) -> Path:
    """The run of some responses, saved."""
    run = medtasks.score(rows, task, model="made", out=folder / "run")
    assert run.path is not None
    return run.path


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A team file."""
    path = tmp_path / "team.yaml"
    path.write_text(yaml.safe_dump(MEASURED_TEAM), encoding="utf-8")
    return path


Command = Callable[..., str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line; returns what it prints. A failure raises SystemExit with its code."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["medtasks-challenges", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        if ended.value.code:
            assert captured.err.count("\n") == 1, captured.err
            raise SystemExit(captured.err)
        return captured.out

    return run

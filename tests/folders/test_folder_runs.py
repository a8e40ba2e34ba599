"""Runs of the real harness on benchmark folders of every kind of answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogs import fresh
from folder_bench import (
    LABEL_PROMPT,
    OPEN_PROMPT,
    OPTIONS_YAML,
    FolderBuilder,
    option_rows,
)
from terminal import Terminal

pytestmark = pytest.mark.slow

RUBRIC = """\
name: open_vqa_rubric
version: 1
title: Open questions
template: open_vqa/judge.j2
sees: [question, target]
reasons: true
aggregation: mean_of_maximum
metrics: {open_vqa_judged: total}
aspects:
  - name: correctness
    maximum: 1
    anchors: {0: it says something else, 1: the same in substance}
"""
JUDGE = """\
{% include "judge/_data_rule.j2" %}
{% include "judge/_scale.j2" %}

Question: {{ question }}
Reference answer: {{ target }}

{% include "judge/_verdict.j2" %}
"""


def short_yaml(name: str, answers: str, more: str = "") -> str:
    columns = "{question: question, answer: answer, image: image, id: id}"
    return f"name: {name}\ntitle: {name}\ndata: rows.csv\ncolumns: {columns}\nanswers: {answers}\n{more}"


def short_folder(path: Path, yaml: str, answers: tuple[str, ...], **settings: Any) -> Path:
    """A folder whose gold answers are ``answers`` in turn."""
    builder = FolderBuilder(path, yaml, **settings)
    builder.rows = option_rows()
    for row in range(20):
        builder.set(row, "answer", answers[row % len(answers)])
    return builder.write()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory with a run of each baseline on four folders."""
    from medtasks.harness import run_tasks

    root = tmp_path_factory.mktemp("folders")
    options = f"{OPTIONS_YAML}prompt: [question.j2, other.j2]\n"
    other = "Look closely. {{ question }} {% for l in choices | sort if choices[l] %}{{ l }}. {{ choices[l] }} {% endfor %}"
    folders = [
        FolderBuilder(root / "my_vqa", options, files={"other.j2": other}).write(),
        short_folder(
            root / "yes",
            short_yaml("yes_vqa", "yes/no"),
            ("Yes", "no", "no", "no"),
            prompt=OPEN_PROMPT,
        ),
        short_folder(
            root / "closed",
            short_yaml("closed_vqa", "closed", "language: de\n"),
            ("Fraktur", "Erguss", "normal"),
            prompt=LABEL_PROMPT,
        ),
        short_folder(
            root / "open",
            short_yaml("open_vqa", "open", "rubric: rubric.yaml\n"),
            ("the liver", "a lung", "the heart"),
            prompt=OPEN_PROMPT,
            files={"rubric.yaml": RUBRIC, "judge.j2": JUDGE},
        ),
    ]
    tasks = ["my_vqa", "my_vqa_circular", "my_vqa_prompts", "yes_vqa", "closed_vqa", "open_vqa"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_DATA", str(root / "data"))
        patch.setenv("MEDTASKS_BENCHMARKS", ":".join(map(str, folders)))
        with fresh():
            for policy in ("oracle", "uniform"):
                run_tasks("medtasks_baseline", f"policy={policy}", tasks, root / "runs" / policy)
            yield root / "runs"


@pytest.fixture
def in_use(results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results, where commands use the folders with their data."""
    root = results.parent
    folders = [root / name for name in ("my_vqa", "yes", "closed", "open")]
    monkeypatch.setenv("MEDTASKS_BENCHMARKS", ":".join(map(str, folders)))
    monkeypatch.setenv("MEDTASKS_DATA", str(root / "data"))
    return results


def scores_of(results: Path, policy: str) -> dict[str, Any]:
    (file,) = (results / policy).glob("*_medtasks/scores.json")
    tasks: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["tasks"]
    return {name: task["metrics"] for name, task in tasks.items()}


def test_the_oracle_reaches_the_top_and_guessing_is_near_chance(results: Path) -> None:
    for name, scores in scores_of(results, "oracle").items():
        for metric in ("accuracy", "circular_accuracy", "exact_match", "rougeL"):
            if metric in scores:
                assert scores[metric]["value"] == 1.0, (name, metric)
    guessed = scores_of(results, "uniform")
    chances = {"my_vqa": 1 / 3, "my_vqa_circular": 1 / 3, "closed_vqa": 1 / 3, "yes_vqa": 1 / 2}
    for name, chance in chances.items():
        accuracy = guessed[name]["accuracy"]
        assert accuracy["chance"] == pytest.approx(chance)
        low, high = accuracy["interval"]
        assert low <= chance <= high, name
    assert guessed["yes_vqa"]["accuracy"]["constant_answer"] == "no"
    assert guessed["yes_vqa"]["accuracy"]["constant"] == 0.75


def test_variants_breakdowns_and_a_rubric(results: Path) -> None:
    scores = scores_of(results, "oracle")
    assert {"worst_prompt", "prompt_spread"} <= scores["my_vqa_prompts"].keys()
    assert "rotation_consistency" in scores["my_vqa_circular"]
    assert scores["open_vqa"]["open_vqa_judged"]["value"] is None
    text = json.dumps(json.loads(next(results.glob("oracle/*_medtasks/scores.json")).read_text()))
    assert '"modality"' in text


def test_results_have_no_path_of_this_machine(results: Path) -> None:
    for file in results.glob("*/*_medtasks/**/*.json*"):
        assert str(results.parent) not in file.read_text(encoding="utf-8"), file


def test_scoring_comparing_and_a_board(in_use: Path, medtasks: Any) -> None:
    scored = medtasks("score", str(in_use / "oracle"))
    assert (scored.returncode, "no score has changed" in scored.stdout) == (0, True), scored.stderr
    compared = medtasks("compare", str(in_use / "oracle"), str(in_use / "uniform"))
    assert "my_vqa  " in compared.stdout
    built = medtasks("leaderboard", "build", str(in_use), "--out", "board")
    assert built.returncode == 0, built.stderr
    assert "oracle leads uniform" in built.stdout
    page = Path("board/index.html").read_text(encoding="utf-8")
    assert "My VQA" in page


def test_a_blind_run(in_use: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtasks.harness import run_tasks

    monkeypatch.setenv("MEDTASKS_BLIND", "1")
    with fresh():
        run = run_tasks("medtasks_baseline", "policy=calibrated", ["yes_vqa"], tmp_path / "blind")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert "blind" in json.dumps(manifest)
    metrics = json.loads((run / "scores.json").read_text(encoding="utf-8"))["tasks"]["yes_vqa"]
    assert {"accuracy", "ece"} <= metrics["metrics"].keys()
    assert in_use.is_dir()


def test_include_path_and_names_of_folders(in_use: Path, new_python: Any, tmp_path: Path) -> None:
    """A task may have the name of the folder in the working directory, which the harness reads as
    a directory of task files.
    """
    (tmp_path / "my_vqa").symlink_to(in_use.parent / "my_vqa")
    command = ["-m", "lmms_eval", "--model", "medtasks_baseline", "--model_args", "policy=oracle"]
    command += ["--tasks", "my_vqa", "--output_path", "out"]
    done = new_python(*command, "--include_path", "my_vqa", MEDTASKS_BENCHMARKS="")
    assert done.returncode == 0, done.stderr
    assert "my_vqa  n=20    accuracy 1.000" in done.stdout + done.stderr
    refused = new_python(*command, MEDTASKS_BENCHMARKS="")
    assert refused.returncode == 2
    assert "my_vqa is a benchmark folder that is not in use; run: medtasks add" in refused.stderr


def test_two_processes_prepare_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_BENCHMARKS", str(FolderBuilder(tmp_path / "f").write()))
    command = [sys.executable, "-m", "medtasks", "show", "my_vqa"]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    printed = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], printed
    assert sum("preparing my_vqa (once)" in messages for _, messages in printed) == 1
    assert all("Which colour is shape 0?" in text for text, _ in printed)


BOTH = """
import os, subprocess, sys
command = [sys.executable, "-m", "medtasks", "show", "my_vqa"]
ranks = [{**os.environ, "RANK": rank, "WORLD_SIZE": "2"} for rank in ("0", "1")]
for process in [subprocess.Popen(command, env=rank) for rank in ranks]:
    process.wait()
"""
"""Starts two processes of a run, as a launcher does."""
LATE = BOTH.replace("for process in [subprocess", "for process in (subprocess").replace(
    "ranks]", "ranks)"
)
"""The second process starts when the first has been refused, as on a slow machine."""


@pytest.mark.parametrize("launcher", [BOTH, LATE], ids=["together", "late"])
def test_a_download_is_refused_once_for_all_processes(tmp_path: Path, launcher: str) -> None:
    folder = FolderBuilder(tmp_path / "f").set(0, "image", "https://a.invalid/1.png").write()
    environment = {**os.environ, "MEDTASKS_BENCHMARKS": str(folder), "MEDTASKS_DOWNLOAD": ""}
    environment["MEDTASKS_CACHE"] = str(tmp_path / "cache")
    for _ in range(2):  # a later command asks again
        with Terminal([sys.executable, "-c", launcher], environment, tmp_path) as terminal:
            terminal.wait_for("of a.invalid Download? [y/N]")
            terminal.type("n\nn\n")  # the second answer is for a question that must not come
            terminal.ends()
        assert terminal.text.count("Download?") == 1
        assert terminal.text.count("1 picture at URLs of a.invalid are not downloaded") == 2

"""A run whose data are missing downloads and prepares them, then runs: the whole command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import lmms_eval
from hub_releases import PICTURES, ROWS, kvasir_release
from runs import Run
from stub_hub import COMMIT, StubHub
from terminal import Terminal

from medtasks.benchmarks.kvasir_vqa_x1.prepare import HUB
from medtasks.data.prepared import open_directory

pytestmark = pytest.mark.slow

LEVEL1 = "kvasir_vqa_x1_level1"


@pytest.fixture
def hub() -> Iterator[StubHub]:
    with StubHub(kvasir_release()) as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, hub: StubHub) -> dict[str, str]:
    """The environment of a machine without data."""
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "",
        "MEDTASKS_DATA": str(tmp_path / "data"),
    }


def test_a_run_downloads_prepares_and_scores(
    new_python: Any, tmp_path: Path, settings: dict[str, str], hub: StubHub
) -> None:
    refused = lmms_eval(new_python, tmp_path, "--tasks", LEVEL1, **settings)
    assert refused.code == 1
    assert "or set MEDTASKS_DOWNLOAD=yes, and the run downloads" in refused.sentence
    assert hub.asked == []

    settings["MEDTASKS_DOWNLOAD"] = "yes"
    done = lmms_eval(new_python, tmp_path, "--tasks", LEVEL1, **settings)
    assert done.code == 0, done.err
    assert "prepared kvasir_vqa_x1: 79 rows" in done.err
    assert len(done.run.samples(LEVEL1)) == 37
    assert done.run.scores[LEVEL1]["metrics"]["rougeL"]["value"] == 1
    prepared = open_directory(tmp_path / "data" / "kvasir_vqa_x1").manifest
    assert (prepared.source.name, prepared.source.revision) == (HUB, COMMIT)
    assert done.run.manifest["data"]["kvasir_vqa_x1"]["fingerprint"] == prepared.fingerprint


def test_all_evaluations_of_a_command_are_asked_about_at_once(
    tmp_path: Path, settings: dict[str, str], hub: StubHub
) -> None:
    both = tmp_path / "both.yaml"
    evaluation = (
        "- {model: medtasks_baseline, model_args: policy=oracle, tasks: TASKS, output_path: OUT}\n"
    )
    text = evaluation.replace("TASKS", LEVEL1).replace("OUT", str(tmp_path / "one"))
    text += evaluation.replace("TASKS", "kvasir_vqa_x1_transformed_level2").replace(
        "OUT", str(tmp_path / "two")
    )
    both.write_text(text)
    command = [sys.executable, "-m", "medtasks", "run", "--config", str(both)]
    with Terminal(command, {**os.environ, **settings}, tmp_path) as terminal:
        terminal.wait_for("[y/N]")
        assert "kvasir_vqa_x1_transformed (Kvasir-VQA-x1, transformed): made from" in terminal.text
        terminal.type("y\n")
        assert terminal.ends() == 0, terminal.text[-3000:]
    assert terminal.text.count("[y/N]") == 1
    assert hub.begun == {ROWS: 1, PICTURES: 1}
    for name, task in (("one", LEVEL1), ("two", "kvasir_vqa_x1_transformed_level2")):
        (folder,) = (tmp_path / name).rglob("*_medtasks")
        assert Run(folder).samples(task)


def test_one_process_of_two_prepares(
    new_python: Any, tmp_path: Path, settings: dict[str, str], hub: StubHub
) -> None:
    output = tmp_path / "out"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    model = ("--model", "medtasks_baseline", "--model_args", "policy=oracle")
    done = new_python(
        *launcher, "-m", "lmms_eval", *model, "--tasks", LEVEL1, "--output_path", str(output),
        **settings, MEDTASKS_DOWNLOAD="yes", ACCELERATE_USE_CPU="true",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert hub.begun == {ROWS: 1, PICTURES: 1}
    assert done.stderr.count("medtasks: prepared kvasir_vqa_x1: 79 rows") == 1
    (folder,) = output.rglob("*_medtasks")
    assert len(Run(folder).samples(LEVEL1)) == 37

"""``medtasks demo``: a real vision-language model (random weights) and baselines through every subtask; the page."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from runs import Run, leaf_names

pytestmark = pytest.mark.subprocess_run


@dataclass(frozen=True)
class Demo:
    """What it printed, and the folder that it wrote."""

    printed: str
    folder: Path

    def run(self, name: str) -> Run:
        (found,) = (self.folder / name).rglob("*_medtasks")
        return Run(found)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "medtasks", "demo", "--out", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=550, check=False)
    assert done.returncode == 0, done.stderr
    return Demo(done.stdout, folder / "out")


@pytest.fixture(scope="module")
def run(demo: Demo) -> Run:
    return demo.run("tiny_vlm")


def test_it_shows_intervals_and_a_sample(demo: Demo) -> None:
    assert "1.000 [1.000, 1.000]" in demo.printed
    assert "One line of the sample log" in demo.printed
    assert "a demonstration, not a benchmark result" in demo.printed
    assert len(list(demo.folder.rglob("manifest.json"))) == 4


@pytest.mark.parametrize("task", leaf_names())
def test_every_document_is_answered_and_scored(run: Run, task: str) -> None:
    lines = run.samples(task)
    assert len(lines) == run.manifest["tasks"][task]["asked"] == run.scores[task]["samples"]
    assert {len(line["responses"]) for line in lines} == {3 if task.endswith("_sampled") else 1}


def test_the_manifest_describes_the_checkpoint(run: Run) -> None:
    model = run.manifest["model"]
    assert model["model"] == "medtasks_vlm"
    generated = sum(facts["answered"] * generations(name) for name, facts in run.manifest["tasks"].items())
    assert model["finish"]["stop"] + model["finish"]["length"] == generated


def generations(task: str) -> int:
    """Answers that the model writes for one document: three samples, two stages, or one."""
    return 3 if task.endswith("_sampled") else 2 if "_stagewise_" in task else 1

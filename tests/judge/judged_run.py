"""A finished run of the real harness that awaits its judge, and judging it as the command does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from medtasks.cli.judge import judge
from medtasks.harness import run_tasks
from medtasks.judge.stub import StubJudge


def awaiting_run(group: str, output: Path) -> Path:
    """The folder of a noisy oracle's run."""
    return run_tasks(
        "medtasks_baseline", "policy=noisy_oracle,accuracy=0.5,seed=3", [group], output
    )


def copied(folder: Path, to: Path) -> Path:
    """The run as another user would get it: its folder, and the harness's results file beside
    it.
    """
    to.mkdir()
    for path in folder.parent.glob(folder.name.removesuffix("_medtasks") + "*"):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, to / path.name)
    return to / folder.name


def settings_of(stub: StubJudge, **more: Any) -> str:
    """One judge as it is given on the command line."""
    return ",".join(
        f"{key}={value}"
        for key, value in {"model": "stub-judge", "base_url": stub.url, **more}.items()
    )


def judged(folder: Path, *judges: str, store: Path, **options: Any) -> dict[str, Any]:
    """Judge the run in place; its scores by task and group afterwards."""
    judge(folder, list(judges), store=store, **options)
    return scores_of(folder)


def scores_of(folder: Path) -> dict[str, Any]:
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    return {**scores["tasks"], **scores["groups"]}


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def samples_of(folder: Path, task: str) -> list[dict[str, Any]]:
    return exported(folder / "samples" / f"{task}.jsonl")


def exported(path: Path) -> list[dict[str, Any]]:
    """The lines of an export of verdicts."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def content(folder: Path) -> dict[str, bytes]:
    """Bytes of every file of the folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }

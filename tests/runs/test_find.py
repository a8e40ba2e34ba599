"""Every command takes a run's folder, or one that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medtasks.core.errors import UsageError
from medtasks.harness import run_tasks
from medtasks.runs.find import finished_run, one_run

TASK = "med_cmr_mcq_su"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("output") / "results"
    run_tasks("medtasks_baseline", "policy=oracle", [TASK], out)
    return out


@pytest.mark.parametrize(
    ("command", "above"),
    [
        *((["score", "{}"], above) for above in (0, 1, 2)),
        (["score", "{}", "--against", "{}"], 1),
        (["compare", "{}", "{}"], 1),
        (["compare", "{}", "{}", "--task", TASK], 2),
        (["leaderboard", "check", "{}", "--demonstration"], 1),
        (["leaderboard", "build", "{}", "--demonstration", "--out", "page"], 0),
        (["leaderboard", "strip", "{}", "--out", "stripped"], 2),
    ],
)
def test_a_run_and_its_parents_are_the_same(
    medtasks: Any, command: list[str], above: int, output: Path
) -> None:
    (run,) = output.rglob("*_medtasks")
    given = [run, *run.parents][above]
    assert medtasks(*(part.format(given) for part in command)).returncode == 0


def test_several_runs_are_named_and_none_is_chosen(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name / "1_medtasks").mkdir(parents=True)
    with pytest.raises(
        UsageError,
        match=r"contains 2 result directories \(a/1_medtasks, b/1_medtasks\), expected one",
    ):
        one_run(tmp_path)


def test_an_unfinished_run_is_named_where_there_is_no_other(tmp_path: Path) -> None:
    left = tmp_path / "model" / "0123456789ab_unfinished"
    left.mkdir(parents=True)
    (left / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match=f"{left} is an unfinished run, give it"):
        one_run(tmp_path)
    assert one_run(left) == left
    with pytest.raises(UsageError, match="it is an unfinished run: score the replies so far first"):
        finished_run(left)

"""What ``medtasks leaderboard check`` prints: a line for each submission, and on request each
finding.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from invented_runs import MODELS, edit_json, write_run_of
from medtasks.leaderboard.intake.check import check_results
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.report import folded, overview
from medtasks.leaderboard.intake.submission import Requirements

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

CAREFUL, GUESS = MODELS[1], MODELS[3]
REHEARSAL = Requirements(demonstration=True)
RUN = "20261101_000000_medtasks"
FINE = f"team-a/Careful-7B/{RUN} (invented/Careful-7B)"
FORGED = f"team-b/Guess-1B/{RUN} (invented/Guess-1B)"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is fine, one with a forged score in each of two tasks, and an empty directory."""
    root = tmp_path_factory.mktemp("results")
    write_run_of(root / "team-a", CAREFUL, ["med_cmr_mcq"])
    forged = write_run_of(root / "team-b", GUESS, ["med_cmr_mcq"])
    for path in sorted((forged / "samples").glob("*.jsonl"))[:2]:
        edit_json(path, lambda it: it["scores"].update(accuracy=0.5), line=0)
    edit_json(
        forged / "manifest.json",
        lambda it: [one.update(blind=True) for one in it["tasks"].values()],
    )
    (root / "team-c" / "broken_medtasks").mkdir(parents=True)
    return root


def test_a_line_for_each_submission_by_path_and_model(results: Path) -> None:
    rows = overview(check_results([results], REHEARSAL, environment={}))
    assert [row[:2] for row in rows] == [
        ("ok", FINE),
        ("refused", FORGED),
        ("refused", "team-c/broken_medtasks"),
    ]
    assert "score or extracted answer differs from that computed here (LB405)" in rows[1][2]


def test_a_root_that_is_the_run_itself_is_named_by_its_directory(results: Path) -> None:
    report = check_results([results / "team-a" / "Careful-7B" / RUN], REHEARSAL, environment={})
    assert report.submissions == (f"{RUN} (invented/Careful-7B)",)


def test_every_finding_names_its_submission(results: Path) -> None:
    report = check_results([results], environment={})
    assert {one.submission for one in report.findings} == {FINE, FORGED, "team-c/broken_medtasks"}
    assert {one.submission for one in report.findings} == {*report.submissions}


def test_findings_of_several_tasks_are_folded(results: Path) -> None:
    report = check_results([results], REHEARSAL, environment={})
    codes = [one.code for one in folded(report)[FORGED]]
    assert len(codes) == len({*codes})
    assert len([one for one in report.findings if one.submission == FORGED]) >= len(codes)


def test_refusals_of_a_board_have_the_same_names(results: Path) -> None:
    runs, refused = collect([results])
    assert {run.public.folder for run in runs} == {FINE.partition(" ")[0], FORGED.partition(" ")[0]}
    assert [one.folder for one in refused] == ["team-c/broken_medtasks"]


def test_the_command_prints_lines_and_details_on_request(results: Path, medtasks: Command) -> None:
    short = medtasks("leaderboard", "check", str(results), "--demonstration")
    assert short.returncode == 1
    assert short.stdout.splitlines()[1].split() == ["ok", *FINE.split()]
    assert "expected" not in short.stdout
    assert "--verbose" in short.stdout
    whole = medtasks("leaderboard", "check", str(results), "--demonstration", "--verbose")
    assert "expected 0" in whole.stdout or "expected 1" in whole.stdout
    printed = json.loads(
        medtasks("leaderboard", "check", str(results), "--demonstration", "--json").stdout
    )
    assert {*printed["submissions"]} == {one["submission"] for one in printed["findings"]} | {FINE}


def test_a_rehearsal_needs_the_option_in_both_commands(
    results: Path, medtasks: Command, tmp_path: Path
) -> None:
    checked = medtasks("leaderboard", "check", str(results / "team-a"), "--verbose")
    assert checked.returncode == 1
    assert "--demonstration" in checked.stdout
    built = medtasks(
        "leaderboard", "build", str(results / "team-a"), "--out", str(tmp_path / "page")
    )
    assert "For a rehearsal, build and check with --demonstration." in built.stdout
    built = medtasks(
        "leaderboard",
        "build",
        str(results / "team-a"),
        "--out",
        str(tmp_path / "page"),
        "--demonstration",
    )
    assert "For a rehearsal" not in built.stdout

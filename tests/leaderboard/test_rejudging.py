"""Submitted verdicts that a judge is asked about again: honest ones agree, invented ones do not,
pages say so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from invented_runs import MODELS, edit_json, write_runs
from medtasks.leaderboard.publish import BoardOptions, publish
from medtasks.leaderboard.verify.rejudging import read_rejudged

from medtasks.judge.stub import MODEL, StubJudge
from medtasks.scoring.run_folder import read_run

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

TASK = "med_cmr_open"
Command: TypeAlias = "Callable[..., subprocess.CompletedProcess[str]]"
KEY = "api_key_env=MEDTASKS_STUB_KEY"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the stub's verdicts."""
    root = tmp_path_factory.mktemp("judged")
    return next(iter(write_runs(root, MODELS[1:2], [TASK]).values()))


@pytest.fixture
def submitted(judged: Path, tmp_path: Path) -> Path:
    """A copy, which a test may spoil."""
    return Path(shutil.copytree(judged, tmp_path / "submitted" / judged.name))


@pytest.fixture
def check(medtasks: Command, submitted: Path) -> Command:
    """Check the copy, with these options."""
    options = ("--demonstration", "--coverage", "0", "--verbose", "--rejudge")
    return partial(medtasks, "leaderboard", "check", str(submitted), *options)


@pytest.fixture
def build(medtasks: Command, submitted: Path) -> Command:
    """Build the site of the copy."""
    return partial(
        medtasks, "leaderboard", "build", str(submitted), "--out", "site", "--demonstration"
    )


def every_verdict(folder: Path, score: int) -> int:
    """Give every aspect of every verdict this score; how many scores there are."""
    changed = 0
    for path in sorted((folder / "samples").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for sample in lines:
            for responses in sample["verdicts"].values():
                for verdict in (
                    one for response in responses for one in response.get("judges", {}).values()
                ):
                    changed += len(verdict["scores"])
                    verdict["scores"] = dict.fromkeys(verdict["scores"], score)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return changed


def test_honest_verdicts_are_given_again_and_the_page_says_so(
    judged: Path, submitted: Path, tmp_path: Path, check: Command
) -> None:
    record = tmp_path / "rejudged.json"
    with StubJudge() as stub:
        judge = {"model": MODEL, "base_url": stub.url, "api_key_env": "MEDTASKS_STUB_KEY"}
        store = str(judged.parents[1] / "verdicts.sqlite")  # the submitter's, which is not asked
        (tmp_path / "judge.yaml").write_text(
            json.dumps({"judges": [judge], "store": store}), encoding="utf-8"
        )
        done = check("40%", "--seed", "7", "--judge", "judge.yaml", "--rejudged", str(record))
        asked = len(stub.requests)
    [one] = read_rejudged(record)
    tasks = {
        task: len(samples)
        for task, samples in read_run(submitted)[1].items()
        if task.startswith("med_cmr")
    }
    assert one.samples == sum(-(-2 * number // 5) for number in tasks.values()) == asked > 0
    assert (one.equal, one.unanswered, one.same_judge) == (one.scores, 0, True)
    raw = [
        measure.value for measure in one.agreement.measures if measure.measure == "raw agreement"
    ]
    assert one.scores == one.samples * len(raw)
    assert {*raw} == {1.0}
    assert done.returncode == 0
    assert f"{one.equal:,} of {one.scores:,} scores equal (100.0%)" in done.stdout
    assert "raw agreement" in done.stdout
    assert "LB213" not in done.stdout

    options = BoardOptions(demonstration=True, rejudged=record)
    publish([submitted], tmp_path / "site", options)
    page = (tmp_path / "site" / "protocol.html").read_text(encoding="utf-8")
    assert "for 1 of 1 judged run, a sample of the verdicts was judged again" in page
    assert str(one) in page


def test_invented_verdicts_and_another_judge_are_reported(
    submitted: Path, tmp_path: Path, check: Command, build: Command
) -> None:
    record = tmp_path / "rejudged.json"
    scores = every_verdict(submitted, 5)
    with StubJudge() as stub:
        judge = f"model=other,base_url={stub.url},{KEY}"
        said = check("1", "--judge", judge, "--rejudged", str(record)).stdout
    [one] = read_rejudged(record)
    assert one.scores == scores
    assert not one.same_judge
    assert one.equal < 0.9 * scores
    [line] = [line for line in said.splitlines() if "LB213" in line]
    assert line.startswith("warning")
    assert "asked again of other, another judge than the run's" in line
    assert f"{one.equal:,} of {scores:,} scores equal" in line

    every_verdict(submitted, 4)  # after the check
    done = build("--rejudged", str(record))
    assert done.returncode == 0
    assert f"{submitted.name} is not on this board as it was checked; left out" in done.stdout
    assert "none were judged again here" in (tmp_path / "site" / "protocol.html").read_text(
        encoding="utf-8"
    )


def test_a_response_without_a_verdict_is_not_asked_again(
    submitted: Path, tmp_path: Path, check: Command
) -> None:
    edit_json(
        submitted / "samples" / "med_cmr_open_cr.jsonl",
        lambda sample: sample.update(verdicts={}),
        line=0,
    )
    judged = sum(len(samples) for samples in read_run(submitted)[1].values()) - 1
    with StubJudge() as stub:
        check(
            "1",
            "--judge",
            f"model={MODEL},base_url={stub.url},{KEY}",
            "--rejudged",
            "rejudged.json",
        )
    [one] = read_rejudged(tmp_path / "rejudged.json")
    assert (one.samples, one.equal) == (judged, one.scores)


def test_a_judge_that_cannot_be_asked_costs_no_other_finding(
    submitted: Path, check: Command
) -> None:
    (submitted / "notes.txt").write_text("x", encoding="utf-8")
    judge = "model=m,base_url=http://127.0.0.1:9/v1,retries=0"
    done = check("5%", "--judge", judge)
    assert done.returncode == 1
    said = done.stdout
    assert {"LB103", "LB214"} <= {word for line in said.splitlines() for word in line.split()}
    assert "m at http://127.0.0.1:9/v1: connection" in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [(("--rejudge", "5%"), "--judge"), (("--rejudge", "0%", "--judge", "model=m,base_url=http://a/v1"), "5% or 0.05"),
     (("--rejudge", "all", "--judge", "model=m,base_url=http://a/v1"), "5% or 0.05"),
     (("--rejudged", "x.json"), "--rejudge and --judge")],
)  # fmt: skip
def test_wrong_options_are_named(
    options: tuple[str, ...], problem: str, medtasks: Command, submitted: Path
) -> None:
    done = medtasks("leaderboard", "check", str(submitted), *options)
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_file_of_another_format_is_refused(tmp_path: Path, build: Command) -> None:
    (tmp_path / "rejudged.json").write_text('[{"run": 1}]', encoding="utf-8")
    done = build("--rejudged", "rejudged.json")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("medtasks: rejudged.json: ")

"""Mutated result directories: each is on the board or refused with a reason, whoever reads it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forged_runs import check
from invented_runs import MODELS, write_runs
from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.remove_rows import remove_rows
from mutations import mutated, mutated_line

import medtasks
from medtasks.cli.judge import judge
from medtasks.cli.score import score
from medtasks.core.errors import MedtasksError
from medtasks.judge.stub import MODEL, StubJudge
from medtasks.scoring.run_folder import read_manifest, read_run

pytestmark = pytest.mark.slow

TASKS = ("med_cmr_mcq_su", "med_cmr_open_su")
Mutate = Callable[[Path, random.Random], None]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with options, open answers and verdicts."""
    (folder,) = write_runs(tmp_path_factory.mktemp("run"), MODELS[1:2], TASKS).values()
    return folder


def manifest(folder: Path, draw: random.Random) -> None:
    path = folder / "manifest.json"
    path.write_bytes(mutated(path.read_bytes(), draw))


def sample(folder: Path, draw: random.Random) -> None:
    path = folder / "samples" / f"{draw.choice(TASKS)}.jsonl"
    path.write_bytes(mutated_line(path.read_bytes(), draw))


def directory(folder: Path, draw: random.Random) -> None:
    """A file that is missing, empty, a directory, a link, a pipe, another file's content, or one
    more.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    path, other = draw.sample(paths, 2)
    kind = draw.randrange(7)
    if kind == 0:
        path.write_bytes(b"")
    elif kind == 1:
        path.write_bytes(other.read_bytes())
    elif kind == 2:
        (path.parent / draw.choice(("x.jsonl", "mi_cxr_icr.jsonl", "é\u202e.jsonl"))).write_bytes(
            path.read_bytes()
        )
    else:
        path.unlink()
        if kind == 3:
            path.mkdir()
        elif kind == 4:
            path.symlink_to(other)
        elif kind == 5:
            os.mkfifo(path)


@pytest.fixture
def stub() -> Iterator[StubJudge]:
    with StubJudge() as started:
        yield started


def read_by_everything_else(folder: Path, out: Path, judge_address: str) -> None:
    """Read the directory as every other command does; what is wrong with it is one sentence of
    ours.
    """
    readers: list[Callable[[], object]] = [
        lambda: read_manifest(folder),
        lambda: read_run(folder),
        lambda: remove_rows(folder, out / "stripped"),
        lambda: write_inspect_logs([folder], out / "logs"),
        lambda: [(run.samples(), run.scores(), run.items()) for run in medtasks.open(folder)],
        lambda: score(folder, out=out / "scored"),
        lambda: judge(
            folder,
            [f"model={MODEL},base_url={judge_address},api_key_env=NONE"],
            store=out / "verdicts",
        ),
    ]
    for read in readers:
        with contextlib.suppress(MedtasksError, OSError):
            read()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("mutate", "count"), [(manifest, 40), (sample, 40), (directory, 20)])
def test_every_directory_is_shown_or_refused(
    mutate: Mutate, count: int, seed: int, run: Path, stub: StubJudge, tmp_path: Path
) -> None:
    draw = random.Random(f"{mutate.__name__} {seed}")
    for number in range(count):
        place = tmp_path / f"{number}"
        folder = Path(shutil.copytree(run, place / run.name))
        mutate(folder, draw)
        runs, refused = collect([place])
        assert len(runs) + len(refused) >= 1, folder  # nothing is lost without a word
        assert all(one.reason for one in refused)
        report = check(place)
        assert refused == [] or report.findings, folder
        read_by_everything_else(folder, tmp_path / f"out-{number}", stub.url)
        shutil.rmtree(place)

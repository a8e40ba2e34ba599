"""Kills of commands at random moments: what they write is there as a whole or not at all, and
nothing else stays.

Each command is started again until it finishes, and killed (SIGKILL) at a moment drawn uniformly
over its duration. Each attempt is a forked process in which everything is imported already. After
every attempt, the directory that the command writes is absent, or that of a command that was not
killed; after the last one, no hidden file is left.

    python performance/kill_commands.py --kills 100 --seed 0

Exits with 1 if something was half written, lost or left.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZipFile

from forked_command import Moment, forked

GROUP = "kvasir_vqa_x1"
RESULT = "result"
"""The directory that a command writes, below its place."""


@dataclass
class Command:
    """A command line that writes `RESULT` in the working directory, and what became of its
    attempts."""

    name: str
    arguments: Sequence[str]
    content: Callable[[Path], object]  # of the result, as far as time does not change it
    kills: int = 0
    finished: int = 0
    half_written: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def flawless(self) -> bool:
        return not (self.half_written or self.left)

    def run(self, place: Path) -> None:
        """The command, in this process."""
        from medtasks.cli.app import main

        os.chdir(place)
        os.environ["MEDTASKS_CACHE"] = str(place / "cache")
        sys.argv = ["medtasks", *self.arguments]
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as printed:
            main()
        (place / "modules").write_text("\n".join(sys.modules))
        (place / "printed").write_text(printed.getvalue())

    def kill_at_random(
        self, kills: int, draw: random.Random, work: Path, run: Path, cache: Path
    ) -> None:
        """Kill the command until it was killed ``kills`` times and finished."""
        whole = self._place(work / f"{self.name}-whole", run, cache)
        forked(lambda: self.run(whole), work / "output")
        for module in (
            (whole / "modules").read_text().split()
        ):  # which each attempt would have to import
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        again = self._place(work / f"{self.name}-again", run, cache)
        _, duration = forked(lambda: self.run(again), work / "output")
        expected = self.content(whole)
        if expected != self.content(again):
            sys.exit(f"{self.name}: two commands that were not killed differ")
        while self.kills < kills:
            place = self._place(work / f"{self.name}-{self.finished}", run, cache)
            ended = False
            while not ended:
                moment = Moment(draw.uniform(0, duration)) if self.kills < kills else None
                ended, _ = forked(lambda to=place: self.run(to), work / "output", moment)
                self.kills += not ended
                if (place / RESULT).exists() and self.content(place) != expected:
                    self.half_written.append(str(place))
                ended = (
                    ended or (place / RESULT).exists()
                )  # a command that never overwrites would refuse it
            self.finished += 1
            if self.content(place) != expected:
                self.half_written.append(str(place))
            forked(lambda to=place: self._start(to), work / "output")
            self.left += [str(path) for path in place.rglob(".*") if path.name.endswith(".tmp")]
            shutil.rmtree(place)

    def _start(self, place: Path) -> None:
        """Begin a further command there, which removes what others left."""
        from medtasks.core.replacement import remove_abandoned
        from medtasks.scoring.run_cache import RunStore

        remove_abandoned(place)
        RunStore(place / "cache" / "scores")

    def _place(self, place: Path, run: Path, cache: Path) -> Path:
        """A new working directory with a run, its predictions, and the miniature data."""
        place.mkdir()
        shutil.copytree(run, place / "run_medtasks")
        shutil.copy(run.parent / "predictions.jsonl", place)
        shutil.copytree(cache, place / "cache")
        return place


def run_content(place: Path) -> object:
    """Samples and scores of a result directory; its manifest has times."""
    folder = place / RESULT
    files = [*sorted((folder / "samples").iterdir()), folder / "scores.json"]
    return [(path.name, path.read_bytes()) for path in files]


def log_content(place: Path) -> object:
    """Members of Inspect's logs and their checksums, without the times of the archives."""
    archives = []
    for path in sorted((place / RESULT).iterdir()):
        with ZipFile(path) as archive:
            archives.append(
                (path.name, sorted((member.filename, member.CRC) for member in archive.infolist()))
            )
    return archives


def printed(place: Path) -> object:
    """What a command prints that writes no directory."""
    path = place / "printed"
    return path.read_text() if path.exists() else None


def site_content(place: Path) -> object:
    site = place / RESULT
    files = sorted(path for path in site.rglob("*") if path.is_file())
    return [(path.relative_to(site).as_posix(), path.read_bytes()) for path in files]


def commands() -> list[Command]:
    score = ["score", "predictions.jsonl", "--task", GROUP, "--model", "m", "--out", RESULT]
    build = ["leaderboard", "build", "run_medtasks", "--demonstration", "--out", RESULT]
    return [
        Command(
            "export inspect", ["export", "inspect", "run_medtasks", "--out", RESULT], log_content
        ),
        Command("score --out", score, run_content),
        Command("score", ["score", "run_medtasks"], printed),
        Command("leaderboard build", build, site_content),
    ]


def made_run(work: Path) -> Path:
    """A scored run of `GROUP`, beside its predictions."""
    from medtasks.benchmarks.documents import task_documents
    from medtasks.catalog.spec import leaf_tasks

    lines = []
    for task in leaf_tasks(GROUP):
        for document in task_documents(task):
            row = {"task": task, "sample_id": document["sample_id"], "response": document["target"]}
            lines.append(json.dumps(row))
    (work / "predictions.jsonl").write_text("\n".join(lines))
    os.chdir(work)
    command = Command(
        "",
        ["score", "predictions.jsonl", "--task", GROUP, "--model", "m", "--out", RESULT],
        printed,
    )
    command.run(work)
    return work / RESULT


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100, help="over all commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one command")
    options = parser.parse_args()
    os.environ["MEDTASKS_DATA"] = "mini"
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["OMP_NUM_THREADS"] = "1"  # attempts are forked
    work = Path(tempfile.mkdtemp(prefix="medtasks-kills-"))
    try:
        forked(lambda: made_run(work) and None, work / "output")
        run = work / RESULT
        chosen = [command for command in commands() if options.only in (None, command.name)]
        for number, command in enumerate(chosen):
            kills = options.kills * (number + 1) // len(chosen) - options.kills * number // len(
                chosen
            )
            draw = random.Random(f"{options.seed} {command.name}")
            command.kill_at_random(kills, draw, work, run, work / "cache")
            print(command, file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{sum(command.kills for command in chosen)} kills, seed {options.seed}\n")
    print("| command | kills | finished | half written | left behind |\n|---|---:|---:|---:|---:|")
    for command in chosen:
        wrong = len(command.half_written), len(command.left)
        print(
            f"| {command.name} | {command.kills} | {command.finished} | {wrong[0]} | {wrong[1]} |"
        )
    return int(not all(command.flawless for command in chosen))


if __name__ == "__main__":
    sys.exit(main())

"""A leaderboard of many models: CPU seconds, and memory of all processes, of ``medtasks leaderboard
build``.

Each run has 16,022 Kvasir-shaped rows (`lexical_scoring.py`) with the same questions; its answers
are drawn from four scored runs of different quality. The first build finds nothing kept, the second
one the scores.

    python performance/many_runs.py [--runs 100] [--rows N]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvasir_rows import LEVEL_SIZES, SWAPS, Row, generate
from lexical_scoring import write_folder

from medtasks.benchmarks.documents import prompt_text
from medtasks.catalog.spec import load_spec

QUALITIES = 4
MEDTASKS = (sys.executable, "-m", "medtasks")


def worse(rows: list[Row], quality: int) -> list[Row]:
    """The rows with some words of the predictions left out or replaced, the more the higher
    ``quality``.
    """
    draw = random.Random(quality)

    def changed(text: str) -> str:
        kept = [word for word in text.split() if draw.random() >= 0.03 * quality]
        words = []
        for word in kept:
            is_swapped = draw.random() < 0.05 * quality
            words.append(SWAPS.get(word, word) if is_swapped else word)
        return " ".join(words)

    return [replace(row, prediction=changed(row.prediction)) for row in rows]


def with_prompt(line: bytes, template: str) -> bytes:
    """A sample line with the prompt that the template makes of its document."""
    sample: dict[str, Any] = json.loads(line)
    own = {name: sample[name] for name in ("sample_id", "cluster", "media", "target")}
    sample["prompt"] = prompt_text({**sample["document"], **own}, template)
    return json.dumps(sample, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def make_runs(folder: Path, rows: list[Row], runs: int) -> Path:
    """A directory of ``runs`` runs."""
    scored = [folder / f"scored{quality}" for quality in range(QUALITIES)]
    for quality, directory in enumerate(scored):
        write_folder(worse(rows, quality), folder / f"raw{quality}")
        raw = str(folder / f"raw{quality}")
        subprocess.run(
            [*MEDTASKS, "score", raw, "--out", str(directory)], check=True, capture_output=True
        )
    manifest = (scored[0] / "manifest.json").read_text(encoding="utf-8")
    files: dict[str, list[list[bytes]]] = {}
    for level in LEVEL_SIZES:
        template = load_spec(f"kvasir_vqa_x1_level{level}").template or ""
        name = f"kvasir_vqa_x1_level{level}.jsonl"
        files[name] = []
        for directory in scored:
            lines = (directory / "samples" / name).read_bytes().splitlines()
            files[name].append([with_prompt(line, template) for line in lines])
    for number in range(runs):
        draw = random.Random(1000 + number)
        shares = [draw.random() for _ in scored]
        run = folder / "board" / f"model{number:03}_medtasks"
        (run / "samples").mkdir(parents=True)
        for name, qualities in files.items():
            chosen = draw.choices(range(QUALITIES), shares, k=len(qualities[0]))
            lines = [qualities[quality][row] for row, quality in enumerate(chosen)]
            (run / "samples" / name).write_bytes(b"".join(lines))
        text = manifest.replace('"model": "generated"', f'"model": "org/model-{number:03}"')
        (run / "manifest.json").write_text(text, encoding="utf-8")
    return folder / "board"


def memory(pid: int) -> list[int]:
    """Proportional memory in MiB of a process, then of its descendants."""
    sizes = []
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        proportional = next(line for line in lines if line.startswith("Pss:"))
        sizes.append(int(proportional.split()[1]) // 1024)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            sizes += memory(int(child))
    return sizes


def main() -> None:
    """Make the runs, build the board, print what that took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=sum(LEVEL_SIZES.values()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        board = make_runs(Path(folder), generate(options.rows, 0), options.runs)
        command = [*MEDTASKS, "leaderboard", "build", str(board), "--demonstration", "--out"]
        env = {**os.environ, "MEDTASKS_CACHE": f"{folder}/cache"}
        print(
            "| runs | rows | kept | CPU s | s | largest process, MiB | all, MiB "
            "|\n|---:|---:|---|---:|---:|---:|---:|"
        )
        for kept in ("nothing", "scores"):
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            largest = together = 0
            with subprocess.Popen(
                [*command, f"{folder}/{kept}"], env=env, stdout=subprocess.DEVNULL
            ) as build:
                while build.poll() is None:
                    sizes = memory(build.pid)
                    largest, together = max([largest, *sizes]), max(together, sum(sizes))
                    time.sleep(1)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            spent = f"{cpu:.0f} | {time.monotonic() - begin:.0f} | {largest:,} | {together:,}"
            print(f"| {options.runs} | {options.rows:,} | {kept} | {spent} |")
            if build.returncode:
                sys.exit(build.returncode)


if __name__ == "__main__":
    main()

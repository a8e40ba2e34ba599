"""CPU seconds of small work: `medtasks demo`, a board of its five runs cold and again, `view` until
its address.

CPU seconds (user) are those of the process and all its children; all caches are below a directory
that is removed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from yardstick import speed

COMMAND = [sys.executable, "-m", "medtasks"]


def cpu(*arguments: str, folder: Path) -> float:
    """User seconds of a command that ends by itself."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with (folder / "output.log").open("a") as log:
        subprocess.run([*COMMAND, *arguments], cwd=folder, check=True, stdout=log, stderr=log)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def cpu_until_address(folder: Path) -> float:
    """User seconds of `medtasks view` until it prints its address."""
    process = subprocess.Popen(
        [*COMMAND, "view", "runs", "--no-browser"], cwd=folder, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    process.send_signal(signal.SIGINT)
    process.communicate()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run all steps and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=Path, help="directory of a finished demo, instead of running it"
    )
    runs: Path | None = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ |= {"MEDTASKS_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
        os.environ.pop("MEDTASKS_DATA", None)
        rows = []
        if runs is None:
            rows.append(("`medtasks demo`", cpu("demo", "--out", "runs", folder=folder)))
            shutil.rmtree(folder / "cache")
        else:
            shutil.copytree(runs, folder / "runs")
        rows.append(("`medtasks view` until its address, nothing kept", cpu_until_address(folder)))
        shutil.rmtree(folder / "cache", ignore_errors=True)
        build = ("leaderboard", "build", "runs", "--out", "page", "--demonstration")
        rows.append(("`leaderboard build`, nothing kept", cpu(*build, folder=folder)))
        rows.append(("`leaderboard build` again", cpu(*build, folder=folder)))
        rows.append(
            ("with `--figures pdf,png,svg`", cpu(*build, "--figures", "pdf,png,svg", folder=folder))
        )
        rows.append(("`medtasks score` of one run", cpu("score", "runs/uniform", folder=folder)))
        rows.append(("`medtasks score` again", cpu("score", "runs/uniform", folder=folder)))
    print(speed())
    print("| what | CPU s |\n|---|---:|")
    for what, seconds in rows:
        print(f"| {what} | {seconds:.1f} |")


if __name__ == "__main__":
    main()

"""Every `medtasks prepare` path on generated content in the published layouts and sizes: time, CPU,
peak memory.

Contents are noise; row counts, file layouts and the number of pictures per row are the releases'.
The same few pictures and videos lie under all names (hard links), so that disk space stays bounded;
each is read and decoded under each name all the same. One path after the other, each in a process
of its own; with `--paths`, some of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generated_releases import RELEASES

PROBE = """
import atexit, re
from medtasks.cli.app import main
status = "/proc/self/status"
atexit.register(lambda: print(re.search(r"VmHWM:\\s+([0-9]+)", open(status).read())[1]))
main()
"""
"""The command, with its own peak of resident memory in KiB as the last line: the kernel's count for
children includes what this process had before it started them.
"""


def measured(arguments: list[str], out: Path) -> tuple[int, float, float, float]:
    """Exit code, seconds, CPU seconds and peak memory in MiB of one `medtasks prepare`."""
    command = [sys.executable, "-c", PROBE, "prepare", *arguments, "--out", str(out)]
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    peak = int(printed.split()[-1]) / 1024
    return child.returncode, time.monotonic() - started, used.ru_utime + used.ru_stime, peak


def main() -> None:
    """Print a row for every path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", nargs="+", choices=RELEASES, default=list(RELEASES))
    names = parser.parse_args().paths
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors\n")
    print("| path | seconds | CPU seconds | peak memory, MiB |\n|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            commands = RELEASES[name](Path(folder) / "release")
            for number, (path, arguments) in enumerate(commands.items()):
                code, wall, cpu, memory = measured(arguments, Path(folder) / f"out{number}")
                label = path if code == 0 else f"{path} (exit code {code})"
                print(f"| {label} | {wall:.1f} | {cpu:.1f} | {memory:,.0f} |", flush=True)


if __name__ == "__main__":
    main()

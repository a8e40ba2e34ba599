"""What a command may print beside its own lines."""

from __future__ import annotations

import re

HARNESS = re.compile(
    r"""
    (\x1b\[\d+m)?\d{4}-\d\d-\d\d\ [\d:]{8}\S*\ \|\ .*lmms_eval.*     # its log
    | (\x1b\[\d+m)?\d{4}-\d\d-\d\d\ [\d:]{8}\S*\ \|\ \S*INFO.*medtasks_ray:\ (\d+|none)\ of\ .*  # ours, on slow machines
    | (?:[^|]*:)?\ *\d+%\|.*                                         # tqdm's bars: its own, torch's and ours
    | Generating\ test\ split:.*
    | \[rank\d+\]:.*|.*torch/distributed/run\.py.*OMP_NUM_THREADS.*|.*run\.py:\d+\]\ \**$|W\d+.*run\.py.*  # torchrun
    """,
    re.VERBOSE,
)
NOISE = re.compile(r"Traceback|nanobind|leaked|[a-z]Warning\b|\bWARNING\b|\x1b\[|\d+it/s")
OURS = "medtasks: "


def noise(stdout: str, stderr: str) -> list[str]:
    """The lines that no command should print: on standard error all but ours and the harness's
    progress and log; on standard output warnings, logs of other libraries, and their reports at the
    end of a process.
    """
    errors = [line for line in re.split(r"[\r\n]+", stderr) if line.strip()]
    unknown = [line for line in errors if not line.startswith(OURS) and not HARNESS.fullmatch(line)]
    printed = [
        line for line in stdout.splitlines() if NOISE.search(line) and not HARNESS.fullmatch(line)
    ]
    return [*printed, *unknown]

"""One answer's walk: the functions of ours that an answer passes, from its reply to the pages of a
board.

One Kvasir-VQA-x1 answer is run, scored and put on a board, then two answers; each in a process that
counts all calls. A function that is called more often for two answers handles answers; all others
run once, however many answers there are, but for what only several answers have: an interval, a
rank.

    python performance/walk.py [--list]        (Python 3.11 or newer)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = f"{Path(__file__).resolve().parent.parent}{os.sep}"
PARTS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")
"""Parts of functions."""


def count(answers: int, directory: Path) -> None:
    """Print the calls by function, as JSON, of the run and of the board."""
    calls: dict[str, Counter[str]] = {"run": Counter(), "board": Counter()}
    phase = "run"

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        name = f"{code.co_filename.removeprefix(ROOT)} {code.co_qualname}"
        ours = code.co_filename.startswith(ROOT) and "site-packages" not in name
        if event == "call" and ours and not any(part in name for part in PARTS):
            calls[phase][name] += 1

    import medtasks.leaderboard.publish  # noqa: F401 - so that class bodies are not counted

    from medtasks.cli.app import app
    from medtasks.harness import run_tasks

    threading.setprofile(note)
    sys.setprofile(note)
    policy = "policy=noisy_oracle,accuracy=0.6,seed=2"
    folder = run_tasks(
        "medtasks_baseline", policy, ["kvasir_vqa_x1_level1"], directory / "run", limit=answers
    )
    phase = "board"
    app(
        ["leaderboard", "build", str(folder), "--out", str(directory / "site"), "--demonstration"],
        standalone_mode=False,
    )
    sys.setprofile(None)
    (directory / "calls.json").write_text(json.dumps(calls), encoding="utf-8")


def main() -> None:
    """Compare one answer with two."""
    if sys.argv[1:2] == ["count"]:
        count(int(sys.argv[2]), Path(sys.argv[3]))
        return
    counts = []
    for answers in (1, 2):
        with tempfile.TemporaryDirectory() as directory:
            environment = {
                **os.environ,
                "MEDTASKS_DATA": "mini",
                "MEDTASKS_CACHE": f"{directory}/cache",
                "HF_HUB_OFFLINE": "1",
            }
            command = [sys.executable, __file__, "count", str(answers), directory]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            counts.append(json.loads((Path(directory) / "calls.json").read_text(encoding="utf-8")))
    once, twice = counts
    handling = {
        phase: {name for name, calls in twice[phase].items() if calls > once[phase].get(name, 0)}
        for phase in twice
    }
    if "--list" in sys.argv:
        for name in sorted(handling["run"] | handling["board"]):
            print(
                name,
                *(
                    f"{phase} {once[phase].get(name, 0)} {twice[phase][name]}"
                    for phase in twice
                    if name in handling[phase]
                ),
            )
    every, again = {*once["run"], *once["board"]}, {*once["run"]} & {*once["board"]}
    print(f"{len(every)} functions run for one answer, {len(again)} of them in run and board.")
    of_run, of_board = handling["run"], handling["board"]
    print(
        f"{len(of_run | of_board)} of them handle answers: {len(of_run)} in the run, "
        f"{len(of_board)} for the board, {len(of_run & of_board)} in both."
    )


if __name__ == "__main__":
    main()

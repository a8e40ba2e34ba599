"""Faults of the environment: closed output, interrupts, no threads, no space, other modes of
Python.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import medtasks as package
from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import machine_fault

TASK = "med_cmr_mcq_su"
SOURCE = Path(package.__file__).parent / "benchmarks" / "med_cmr" / "mini"

IMPORT_INTERRUPTED = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

module = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
runpy.run_module("medtasks", run_name="__main__")
"""


def without_output(*arguments: str, closed: str) -> subprocess.CompletedProcess[str]:
    """The command with closed streams, such as ``>&-`` for standard output."""
    command = f'exec "$0" -m medtasks "$@" {closed}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def without_threads(predictions: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The predictions, as under a limit on processes (``ulimit -u``), which does not hold for
    root.
    """

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    starter = "_start_joinable_thread" if sys.version_info >= (3, 13) else "_start_new_thread"
    monkeypatch.setattr(threading, starter, refuse)
    return predictions


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """A file with one response."""
    path = tmp_path / "predictions.jsonl"
    sample_id = task_documents(TASK)[0]["sample_id"]
    path.write_text(json.dumps({"sample_id": sample_id, "response": "A"}) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
@pytest.mark.parametrize("command", ["path", "nonsense"])
def test_closed_streams_are_no_traceback(command: str, closed: str) -> None:
    done = without_output(command, closed=closed)
    assert done.returncode == (0 if command == "path" else 2)
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["list", "--all"], ["--help"], ["show", "mi_cxr_icr"]])
def test_a_reader_that_has_seen_enough_ends_the_command_silently(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "medtasks", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # as `| head` does
        assert process.stderr.read() == ""


def test_output_to_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "medtasks", "path"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert (
        done.stderr
        == "medtasks: No space left on device; free some space, and run the same command again.\n"
    )


@pytest.mark.parametrize(
    "module", ["medtasks.core.errors", "typer", "medtasks.cli.score", "medtasks.catalog.spec"]
)
def test_an_interrupt_during_imports_is_no_traceback(module: str, new_python: Any) -> None:
    done = new_python("-c", IMPORT_INTERRUPTED, module, "list")
    assert done.returncode in (-signal.SIGINT, 130)
    assert done.stderr in (
        "",
        "medtasks: stopped; finished work is kept: run the same command again to continue\n",
    )


def test_an_interrupt_before_the_command_ends_with_130(
    medtasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.main.get_command", interrupted)
    done = medtasks("list")
    assert (done.returncode, done.stderr.partition(";")[0]) == (130, "medtasks: stopped")


def test_without_threads_a_command_is_one_sentence(medtasks: Any, without_threads: Path) -> None:
    sentence = "medtasks: this machine starts no further thread or process; end some, or raise the limit (ulimit -u).\n"
    done = medtasks(
        "score", str(without_threads), "--task", TASK, "--model", "m", "--out", "scored"
    )
    assert (done.returncode, done.stderr) == (0, "")  # scoring needs none
    done = medtasks("prepare", "med_cmr", "--source", str(SOURCE), "--out", "prepared")
    assert (done.returncode, done.stderr) == (1, sentence)


def test_what_the_machine_lacks_is_told_from_what_is_wrong_with_a_file() -> None:
    lacks = [errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE]
    assert all(machine_fault(OSError(number, os.strerror(number))) for number in lacks)
    of_a_file = [errno.EACCES, errno.ENOENT, errno.EISDIR, errno.ENOTDIR]
    assert not any(machine_fault(OSError(number, os.strerror(number))) for number in of_a_file)
    assert not any(
        map(machine_fault, (RuntimeError("can't start new thread"), ValueError(), MemoryError()))
    )


@pytest.mark.parametrize("mode", [["-OO"], ["-W", "error"]])
@pytest.mark.slow
def test_other_modes_of_python_print_nothing_more(
    mode: list[str], new_python: Any, predictions: Path
) -> None:
    score = ["score", str(predictions), "--task", TASK, "--model", "m", "--out"]
    done = new_python(*mode, "-m", "medtasks", *score, "scored")
    assert (done.returncode, done.stderr) == (0, "")
    assert "accuracy" in done.stdout


KILLS = str(Path(__file__).parents[2] / "performance" / "kill_commands.py")


@pytest.mark.slow
def test_kills_at_random_moments_leave_whole_results_or_none(new_python: Any) -> None:
    done = new_python(KILLS, "--kills", "8")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.startswith("8 kills, seed 0\n")

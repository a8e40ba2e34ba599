"""A command in a forked process, which can be killed at a moment."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Moment:
    """When to kill: ``seconds`` after ``began`` is true for the first time."""

    seconds: float
    began: Callable[[], bool] = lambda: True


def forked(work: Callable[[], None], log: Path, kill: Moment | None = None) -> tuple[bool, float]:
    """Whether ``work`` ended before it was killed, and its seconds.

    Raises:
        SystemExit: it failed; its output is shown.
    """
    began = time.monotonic()
    child = os.fork()
    if not child:
        _run_and_exit(work, log)
    status = _wait(child, kill)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(f"an attempt failed:\n{log.read_text()[-4000:]}")
    return os.WIFEXITED(status), time.monotonic() - began


def _run_and_exit(work: Callable[[], None], log: Path) -> None:
    """Do the work with its output in ``log``, and end this process."""
    code = 1
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _wait(child: int, kill: Moment | None) -> int:
    """The exit status of a process, which is killed at a moment."""
    began: float | None = None
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if kill is not None and began is None and kill.began():
            began = time.monotonic()
        if kill is not None and began is not None and time.monotonic() - began >= kill.seconds:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            return status
        time.sleep(0.005)

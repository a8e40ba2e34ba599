"""Asking on a terminal whether a run may download data."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from medtasks.core.progress_bars import paused_bars
from medtasks.core.settings import current_settings

_BEGAN = time.time()
"""When this process read this module, on the clock of files."""
_STARTED_WITHIN = 60.0
"""Seconds within which the processes of a run get as far as this module."""


def can_ask() -> bool:
    """Whether a user can read and answer a question: in the foreground of a terminal."""
    with paused_bars():  # while bars are drawn, older versions of rich replace standard error
        for stream in (sys.stdin, sys.stderr):
            if stream is None or stream.closed or not stream.isatty():
                return False
    return not _is_in_background()


def _is_in_background() -> bool:
    """Whether the shell runs the command in the background, where reading would stop it."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp()
    except OSError:  # a launcher started the process in a session of its own
        return False


def is_agreed(question: str) -> bool:
    """Ask the question on standard error; return whether the answer is yes (by default, no)."""
    with paused_bars():
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):  # the user has closed the input
            print(file=sys.stderr, flush=True)
    return answer.strip().lower() in ("y", "yes")


def is_agreed_by_run(question: str, refusal: Path) -> bool:
    """Ask like :func:`is_agreed`, unless another process of the run has asked and was refused.

    Args:
        question: what is asked.
        refusal: the file that holds the launcher whose run was refused last; unlike the processes
            of a run, a later command asks again.
    """
    if current_settings().processes == 1:
        return is_agreed(question)
    if _is_refused(refusal):
        return False
    agreed = is_agreed(question)
    if not agreed:
        refusal.parent.mkdir(parents=True, exist_ok=True)
        refusal.write_text(_launcher(), encoding="utf-8")
    return agreed


def _is_refused(refusal: Path) -> bool:
    """Whether a process of this run was refused: one of the same launcher, and lately, because in a
    container every launcher may have the same number.
    """
    if not refusal.is_file() or refusal.read_text(encoding="utf-8") != _launcher():
        return False
    return refusal.stat().st_mtime >= _BEGAN - _STARTED_WITHIN


def _launcher() -> str:
    """The process that started this one, and the others of its run."""
    return str(os.getppid())

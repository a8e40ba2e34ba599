"""Asking on a terminal whether a run may download data."""

from __future__ import annotations

import os
import sys


def can_ask() -> bool:
    """Whether a user can read and answer a question: in the foreground of a terminal."""
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
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # the user has closed the input
        print(file=sys.stderr, flush=True)
    return answer.strip().lower() in ("y", "yes")

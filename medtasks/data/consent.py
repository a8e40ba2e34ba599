"""The question whether a run may download data, asked on a terminal."""

from __future__ import annotations

import os
import sys


def can_ask() -> bool:
    """Whether somebody can read the question and answer it: both streams are a terminal."""
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
    """Ask the question on standard error; whether the answer is yes. By default, it is no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # the user has closed the input
        print(file=sys.stderr, flush=True)
    return answer.strip().lower() in ("y", "yes")

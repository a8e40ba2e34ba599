"""Calls in child processes, for decoders that may crash: a crash costs one call, not the parent."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_SERVE = (
    "import sys; sys.path[:] = sys.argv[1:]; from medtasks.data.media.child import serve; serve()"
)
_IDLE: list[subprocess.Popen[bytes]] = []
"""Children that wait for a call; each ends when its standard input does."""


@atexit.register
def _end_children() -> None:
    """Close the children's standard input, and wait until they have ended."""
    for process in _IDLE:
        process.communicate()


class Crashed(Exception):
    """The child ended during a call; the message has the signal or the exit code."""


def call_in_child(function: Callable[..., T], *arguments: Any) -> T:
    """Call ``function(*arguments)``, all of which are pickled, in a child process. Thread-safe.

    The exception that the function raises is raised here. Not `concurrent.futures`: its children
    outlive a parent that is killed, and import the main module again.

    Raises:
        Crashed: the child ended during the call.
    """
    process = _waiting_child()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump((function, arguments), process.stdin)
        process.stdin.flush()
        error, result = pickle.load(process.stdout)
    except (EOFError, BrokenPipeError) as ended:
        code = process.wait()
        raise Crashed(signal.strsignal(-code) if code < 0 else f"exit code {code}") from ended
    except BaseException:
        process.kill()  # its next answer would be the one to this call
        raise
    _IDLE.append(process)
    if error is not None:
        raise error
    answer: T = result
    return answer


def _waiting_child() -> subprocess.Popen[bytes]:
    """A child that is idle, or else a new one."""
    while _IDLE:
        process = _IDLE.pop()
        if process.poll() is None:  # it was not killed while it waited
            return process
    command = [sys.executable, "-c", _SERVE, *sys.path]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def serve() -> None:
    """Answer calls until standard input ends, also because the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # decoders may print
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: tuple[Exception | None, Any] = (None, function(*arguments))
        except Exception as error:
            answer = (error, None)
        pickle.dump(answer, answers)
        answers.flush()

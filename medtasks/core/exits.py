"""Exit as a command should: with one sentence and code 1 after an error, immediately after an interrupt.

The harness answers any exception with a traceback, several retries and exit code 0, so a script would mistake a
failed run for a finished one. Python also swallows an interrupt that is raised in a destructor.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from medtasks.core.errors import MedtasksError
from medtasks.core.settings import current_settings

INTERRUPTED = 130
"""Exit code of an interrupted program (SIGINT), as in shells."""

_RAISED = ContextVar("raised", default=False)

P = ParamSpec("P")
R = TypeVar("R")


def exit_with_sentence(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` end the process, with code 1 and ``medtasks: <message>`` on standard error, if it raises
    :class:`MedtasksError`; but not within :func:`errors_raised`."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except MedtasksError as error:
            if _RAISED.get():
                raise
            print(f"medtasks: {error}", file=sys.stderr, flush=True)
            raise SystemExit(1) from error

    return guarded


@contextlib.contextmanager
def errors_raised() -> Iterator[None]:
    """Let errors of :func:`exit_with_sentence` reach the caller within the block: a program, which may continue."""
    token = _RAISED.set(True)
    try:
        yield
    finally:
        _RAISED.reset(token)


def stopped(kept: str) -> SystemExit:
    """Report an interrupted command, once for all processes, and return the exception to raise."""
    if current_settings().rank == 0:
        print(f"medtasks: stopped; {kept}.", file=sys.stderr, flush=True)
    return SystemExit(INTERRUPTED)


@contextlib.contextmanager
def interrupts_arrive() -> Iterator[None]:
    """Send SIGINT again if its KeyboardInterrupt was raised in a destructor, where Python only prints it.

    The package ``regex`` has such destructors, so interrupts were often lost while metrics compiled their patterns.
    """
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            again = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            again.start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before

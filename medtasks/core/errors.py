"""The one exception family that reaches users, and how commands end: with one sentence and code 1
after an error, immediately after an interrupt.

Every message is one sentence that names the file, the field, what was found, what was expected and
the fix, so that command-line users never need a traceback. The harness answers any exception with a
traceback, several retries and exit code 0, so a script would mistake a failed run for a finished
one. Python also swallows an interrupt that is raised in a destructor.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from medtasks.core.findings import Place

INTERRUPTED = 130
"""Exit code of an interrupted program (SIGINT), as in shells."""

_RAISED = ContextVar("raised", default=False)

P = ParamSpec("P")
R = TypeVar("R")


class MedtasksError(Exception):
    """Base class of all errors that medtasks raises deliberately; the message is written for the
    user.
    """


class UsageError(MedtasksError):
    """The command or call cannot work as given (unknown task, option out of range); exit code 2."""


class MissingExtraError(UsageError):
    """A package of one of our extras is absent or has another version; the message has the
    ``pip install`` command.
    """


class DataError(MedtasksError):
    """Source data violate their format; the message names file, line and field."""


class MachineError(MedtasksError):
    """This machine is at fault, whatever was being read: it has run out of threads, files or space,
    or the data prepared on it are damaged."""


class DamagedDataError(MachineError, DataError):
    """Prepared data of this machine are damaged, or cannot be read or made."""


class NoRowsError(DataError):
    """The prepared data have no rows for a task, for example because the release lacks them."""


class MediaError(DataError):
    """An image or video is missing, truncated or cannot be decoded."""


class NotPreparedError(MedtasksError):
    """A task's data are not prepared; the message has the ``medtasks prepare`` command."""


class GuestCodeError(MedtasksError):
    """A function of another package returned something unusable; ``place`` is where it is, if
    known.
    """

    def __init__(self, message: str, place: Place | None) -> None:
        super().__init__(message)
        self.place = place


class HarnessError(MedtasksError):
    """The installed lmms-eval does not work with this version of medtasks."""


@contextmanager
def reading(path: Path, fix: str, kind: type[MedtasksError] = DataError) -> Iterator[None]:
    """Report an `OSError` of the block as an error of this ``kind``: the file cannot be read, and
    the ``fix``.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot be read ({error.strerror}); {fix}.") from error


_EXHAUSTED = {
    errno.EDQUOT: "free some space",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close some files",
    errno.ENOSPC: "free some space",
}
"""Errors that say that something has run out, and what to do."""


def machine_fault(error: BaseException) -> MachineError | None:
    """The error to report if ``error`` says that this machine is at fault; None if something else
    may be: of memory, what is read may ask for too much."""
    if isinstance(error, MachineError):
        return error
    if _is_of_thread_start(error) or (isinstance(error, OSError) and error.errno == errno.EAGAIN):
        return MachineError(
            "this machine starts no further thread or process; "
            "end some, or raise the limit (ulimit -u)."
        )
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        fix = f"{_EXHAUSTED[error.errno]}, and run the same command again"
        return MachineError(f"{place}{error.strerror}; {fix}.")
    return None


def _is_of_thread_start(error: BaseException) -> bool:
    """Whether the system refused a thread: Python raises a `RuntimeError` without a number then."""
    if not isinstance(error, RuntimeError):
        return False
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code is _START_OF_THREAD:
            return True
        place = place.tb_next
    return False


_START_OF_THREAD = threading.Thread.start.__code__


def first_line(error: BaseException) -> str:
    """An error on one line: the first line of its message, after the class name unless it is
    ours.
    """
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, MedtasksError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def exit_with_sentence(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` end the process, with code 1 and ``medtasks: <message>`` on standard error,
    if it raises :class:`MedtasksError`; but not within :func:`errors_raised`.
    """

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


@contextmanager
def errors_raised() -> Iterator[None]:
    """Within the block, functions with `exit_with_sentence` raise their errors.

    The caller is a program, which may handle them and continue.
    """
    token = _RAISED.set(True)
    try:
        yield
    finally:
        _RAISED.reset(token)


@contextmanager
def interrupts_arrive() -> Iterator[None]:
    """Send SIGINT again if its KeyboardInterrupt was raised in a destructor, where Python only
    prints it.

    The package ``regex`` has such destructors, so interrupts were often lost while metrics compiled
    their patterns.
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

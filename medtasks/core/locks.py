"""Locks of directories against other processes on the same file system."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from medtasks.core.errors import UsageError

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""Error numbers that a file system without locks answers with."""

_PAUSE = 0.5
"""Seconds between attempts to get a lock that another process holds."""


class LockedError(UsageError):
    """Another process holds the lock; ``holder`` describes it."""

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


@contextlib.contextmanager
def held(target: Path, doing: str, otherwise: str = "") -> Iterator[None]:
    """Lock the directory ``target``, which need not exist, against other processes for the block.

    The lock is a hidden file beside ``target``; the system releases it when the process ends, even
    if it is killed. A file system without locks gives no protection.

    Args:
        doing: what is done to ``target`` meanwhile, as a participle (``prepared``).
        otherwise: the end of the error message after "wait for it", such as another way to go on.

    Raises:
        LockedError: another process holds the lock.
    """
    from filelock import FileLock, Timeout

    path = _lock_file(target)
    # without locks, versions of filelock take a soft one, which outlives a killed process
    if not _has_locks(path.parent):
        yield
        return
    lock = FileLock(path, blocking=False)
    try:
        # older versions of filelock empty the file, with the holder's name, before they lock it
        if is_held(target):
            raise Timeout(str(path))
        lock.acquire()
    except Timeout as error:
        holder = _holder(path)
        message = f"{target}: is being {doing} by {holder}; wait for it{otherwise}."
        raise LockedError(message, holder) from error
    try:
        since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        holder = f"process {os.getpid()} on {socket.gethostname()} since {since}"
        path.write_text(holder, encoding="utf-8")
        yield
    finally:
        # before releasing: whoever waits checks that the file it locked still exists
        path.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def held_when_free(target: Path, doing: str, waits_for: Callable[[str], None]) -> Iterator[None]:
    """Lock like :func:`held`, but wait while another process holds the lock.

    Before it waits, ``waits_for`` is called once with a description of that process.
    """
    is_reported = False
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(held(target, doing))
                break
            except LockedError as error:
                if not is_reported:
                    waits_for(error.holder)
                is_reported = True
                time.sleep(_PAUSE)
        yield


def is_held(target: Path) -> bool:
    """Whether a process holds the lock of :func:`held` on ``target``; true if in doubt."""
    try:
        with _lock_file(target).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # it is held, or the file system has no locks
        return True
    return False


def _has_locks(directory: Path) -> bool:
    """Whether the file system of ``directory`` has locks, tried on a temporary file."""
    with tempfile.TemporaryFile(dir=directory) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _NO_LOCKS
    return True


def _lock_file(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


def _holder(lock_file: Path) -> str:
    """A description of the process that holds a lock, which it wrote into the file."""
    with contextlib.suppress(OSError):
        holder = lock_file.read_text(encoding="utf-8")
        if holder:
            return holder
    return "another process"  # which has not written its name yet


@contextlib.contextmanager
def directory_lock(directory: Path, operation: int) -> Iterator[bool]:
    """Lock an existing directory for the block, and yield whether that succeeded.

    ``operation`` is one of `fcntl.flock`.
    """
    with contextlib.ExitStack() as stack:
        is_locked = False
        # fails if the directory cannot be read, is locked, or its file system has no locks
        with contextlib.suppress(OSError):
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, operation)
            is_locked = True
        yield is_locked

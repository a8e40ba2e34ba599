"""A directory lock that names its holder and is released when its process ends."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from medtasks.core.errors import UsageError


@contextmanager
def held(target: Path, doing: str, otherwise: str = "") -> Iterator[None]:
    """Lock ``target`` for the block, against every other process on this file system.

    It is a ``flock`` on a hidden file beside ``target``, which the system releases when a process is killed.

    Args:
        target: a directory, which need not exist.
        doing: the work, for the message to others: ``prepared``.
        otherwise: what they can do other than wait, if anything.

    Raises:
        UsageError: another process holds it; the message names process, host and time.
        OSError: the file beside ``target`` cannot be written.
    """
    path = target.with_name(f".{target.name}.lock")
    stream = _locked(path)
    if stream is None:
        raise UsageError(f"{target}: is being {doing} by {_holder(path)}; wait for it{otherwise}.")
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    try:
        stream.truncate(0)  # left by a killed process
        stream.write(f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())
        stream.flush()
        yield
    finally:
        path.unlink(missing_ok=True)  # before unlocking: `_locked` checks that the file it locked still exists
        stream.close()


def _locked(path: Path) -> IO[bytes] | None:
    """The locked file; None if another process holds it."""
    while True:
        stream = path.open("ab")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            return None
        except OSError:  # a file system without locks
            pass
        if path.exists() and os.path.samestat(path.stat(), os.fstat(stream.fileno())):
            return stream
        stream.close()  # its holder deleted it before we locked it


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") or "another process"  # which has not written its name yet
    except OSError:
        return "another process"

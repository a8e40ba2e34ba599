"""One preparation of a folder at a time: a lock that names its holder and ends with its process."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from medtasks.errors import UsageError


@contextmanager
def held(target: Path) -> Iterator[None]:
    """Hold ``target`` for the block, against every other process on this file system.

    The lock is the system's, on a hidden file beside ``target``: that of a killed process is free again at once.

    Raises:
        UsageError: another process holds it; the message names process, host, and since when.
        OSError: the file beside ``target`` cannot be written.
    """
    path = target.with_name(f".{target.name}.lock")
    stream = _locked(path, target)
    try:
        stream.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}).encode())
        stream.flush()
        yield
    finally:
        path.unlink(missing_ok=True)  # before it is unlocked: whoever waits for it looks whether it is still there
        stream.close()


def _locked(path: Path, target: Path) -> IO[bytes]:
    while True:
        stream = path.open("a+b")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(stream)
            stream.close()
            raise UsageError(
                f"{target}: is being prepared by {holder}; wait for that, or name another folder with --out."
            ) from error
        except OSError:  # a file system without locks
            pass
        if path.exists() and os.path.samestat(path.stat(), os.fstat(stream.fileno())):
            stream.truncate(0)  # what a killed process wrote
            return stream
        stream.close()  # its holder removed it between our two steps


def _holder(stream: IO[bytes]) -> str:
    try:
        stream.seek(0)
        said = json.loads(stream.read(1000))
        return f"process {said['pid']} on {said['host']} since {said['since']}"
    except (ValueError, KeyError, TypeError):  # it has not written its name yet
        return "another process"


def _now() -> str:
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")

"""Hidden temporary directories in which something is made before one rename puts it in place."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["remove_abandoned", "temporary_beside"]

_SUFFIX = ".tmp"
_NAME = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """A new directory beside ``target``, to be renamed to it; removed at the end if it was not.

    It is locked while in use. A killed process leaves it unlocked, and the next call beside it removes it
    (:func:`remove_abandoned`).

    Raises:
        OSError: the directory cannot be made.
    """
    remove_abandoned(target.parent)
    folder, lock = _made(target)
    try:
        folder.chmod(0o755)  # mkdtemp makes it private; results and caches may be shared
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned(directory: Path) -> None:
    """Remove the directories of :func:`temporary_beside` that killed processes left in ``directory``, if it exists.

    Directories in use stay; on a file system without locks all of them stay.
    """
    with contextlib.suppress(OSError):
        for folder in directory.iterdir():
            if _NAME.fullmatch(folder.name) and not folder.is_symlink():
                with contextlib.suppress(OSError):
                    _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _made(target: Path) -> tuple[Path, int]:
    """A new directory and its lock; made again if another process removed it as abandoned before it was locked."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=_SUFFIX))
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        ours = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            ours = False
        except OSError:  # a file system without locks, on which no process removes it
            pass
        if ours and folder.is_dir():
            return folder, handle
        os.close(handle)

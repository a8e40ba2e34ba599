"""Hidden folders in which something is made before it takes its place in one step."""

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
    """A new folder beside ``target``, to be renamed; whatever has its name in the end is removed.

    It is locked while in use. A process that is killed leaves the folder without a lock, and the next call in the same
    place removes it (:func:`remove_abandoned`).

    Raises:
        OSError: it cannot be made.
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
    """Remove what killed processes have left of :func:`temporary_beside` in ``directory``, which need not exist.

    Folders in use stay, and so do all where the file system has no locks.
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
    """A new folder and its lock; another one where a process took it for abandoned before it was locked."""
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
        except OSError:  # a file system without locks, where nobody removes it either
            pass
        if ours and folder.is_dir():
            return folder, handle
        os.close(handle)

"""Files and directories that are replaced as a whole: readers, and crashes, find the old content or
the new.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from medtasks.core.exchange import exchange
from medtasks.core.locks import directory_lock

_TEMPORARY = ".tmp"
_TEMPORARY_NAME = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_TEMPORARY)}")


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary file to write; it atomically replaces ``path`` unless the block raises."""
    with temporary_beside(path) as folder:
        yield folder / path.name
        (folder / path.name).replace(path)


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """A new directory, to be renamed to ``target``; removed at the end if it still exists.

    It is in a hidden directory next to ``target`` that only this user can open, because a killed
    process leaves it behind and it may hold rows that must not be shared. The next call there
    removes what is no longer locked.
    """
    remove_abandoned(target.parent)
    # until the new folder is locked itself, nobody removes it
    with directory_lock(target.parent, fcntl.LOCK_SH):
        hidden = tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=_TEMPORARY)
        folder = Path(hidden)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # no locks here, so no other process removes it
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        (folder / target.name).mkdir()
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def remove_abandoned(directory: Path) -> None:
    """Remove what killed processes left in ``directory``, which need not exist; without locks,
    nothing is removed.
    """
    with contextlib.suppress(OSError):
        abandoned = [path for path in directory.iterdir() if _TEMPORARY_NAME.fullmatch(path.name)]
        if not abandoned:
            return
        with directory_lock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
            if not is_locked:
                return
            for folder in abandoned:
                if not folder.is_symlink():
                    _remove_unless_locked(folder)


def _remove_unless_locked(folder: Path) -> None:
    """Delete an abandoned directory; one that a running process has locked stays."""
    with directory_lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
        if is_locked:
            shutil.rmtree(folder, ignore_errors=True)


def replace_directory(target: Path, new: Path) -> None:
    """Put the directory ``new`` in the place of ``target``, on the same file system, which is
    deleted if it exists.

    Readers, and crashes, find the old directory or the new one, never a mix: where kernel and file
    system cannot exchange two directories, ``target`` is moved aside for a moment, from which
    :func:`recover_directory` restores it. With an `OSError`, ``target`` is unchanged.
    """
    recover_directory(target)
    if not target.exists():
        new.rename(target)
    elif not exchange(new, target):
        aside = _aside(target)
        target.rename(aside)
        try:
            new.rename(target)
        except OSError:
            aside.rename(target)
            raise
        aside.rename(new)
    shutil.rmtree(new, ignore_errors=True)


def recover_directory(target: Path) -> None:
    """Restore a directory that a crash during :func:`replace_directory` left aside; otherwise do
    nothing.
    """
    aside = _aside(target)
    if not target.exists() and aside.is_dir():
        aside.rename(target)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.aside")

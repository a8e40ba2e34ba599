"""Exchanging two directories atomically: readers, and crashes, find the old one or the new one, never a mix."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def swap(first: Path, second: Path) -> None:
    """Exchange the directories ``first`` and ``second``, which have the same parent.

    Atomic if kernel and file system support it (Linux, ``renameat2``). Otherwise ``second`` is moved aside for a
    moment; after a crash in that moment, :func:`recover` restores it.

    Raises:
        OSError: they cannot be renamed; both are unchanged.
    """
    if _exchanged(first, second):
        return
    aside = _aside(second)
    second.rename(aside)
    try:
        first.rename(second)
    except OSError:
        aside.rename(second)
        raise
    aside.rename(first)


def recover(directory: Path) -> None:
    """Restore a directory that a crash during :func:`swap` left aside; otherwise do nothing."""
    aside = _aside(directory)
    if not directory.exists() and aside.is_dir():
        aside.rename(directory)


def _aside(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.aside")


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange them by ``renameat2``; False if that is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is None:
        return False
    names = (os.fsencode(first), os.fsencode(second))
    return bool(exchange(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)

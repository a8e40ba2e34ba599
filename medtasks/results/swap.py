"""Exchanging two folders in one step: a reader or a crash sees the old one or the new one, never half of each."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def swap(first: Path, second: Path) -> None:
    """Exchange the folders ``first`` and ``second``, which lie in one folder.

    In one step where the kernel and the file system can (Linux, ``renameat2``). Elsewhere ``second`` is moved aside for
    a moment; :func:`recover` mends what a crash in that moment leaves.

    Raises:
        OSError: they cannot be renamed; both are as they were.
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
    """Put a folder back that a crash in the midst of :func:`swap` left aside; otherwise do nothing."""
    aside = _aside(directory)
    if not directory.exists() and aside.is_dir():
        aside.rename(directory)


def _aside(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.aside")


def _exchanged(first: Path, second: Path) -> bool:
    """Whether the kernel exchanged them."""
    if not sys.platform.startswith("linux"):
        return False
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is None:
        return False
    names = (os.fsencode(first), os.fsencode(second))
    return bool(exchange(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)

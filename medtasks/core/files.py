"""File access: bounded reads, atomic writes, canonical JSON and hashes.

Only regular files up to a size limit are read: a named pipe or a device could block or never end,
and untrusted data must not exhaust memory. docs/data.md lists the limits.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.text import well_formed

HASH_LENGTH = 16
"""Hex digits of the short hashes of prompts, protocols and data."""
MAX_PIXELS = 89_478_485
"""Maximum pixels of an image or video frame: 256 MiB as RGB, where Pillow starts to warn."""
MAX_PICTURE_BYTES = 256 * 2**20
"""Maximum bytes of an image file, whether on disk, in an archive or fetched."""
MAX_JSON_BYTES = 2**30
"""Maximum bytes of a file that is read as a whole: JSON, CSV, spreadsheets, records."""
MAX_LINE_BYTES = 256 * 2**20
"""Maximum bytes of one line of a JSONL file."""
_FIRST_YEAR = 1980
"""Of the times in a ZIP archive."""


def check_regular(path: Path) -> int:
    """The size in bytes of the regular file ``path``, or of that which it links to; raises
    `OSError` if it is none.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        found = "a directory" if stat.S_ISDIR(status.st_mode) else "a named pipe, socket or device"
        raise OSError(errno.EINVAL, f"{found}, expected a regular file", str(path))
    return status.st_size


def file_state(status: os.stat_result) -> tuple[int, ...]:
    """Size, times, inode and device: another or a changed file differs, even of the same name, size
    and time.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def read_regular(path: Path, most: int = MAX_JSON_BYTES) -> bytes:
    """The content of ``path``; raises `OSError` if it is not a regular file, or has over ``most``
    bytes.
    """
    size = check_regular(path)
    if size > most:
        raise OSError(errno.EFBIG, f"{size:,} bytes, more than the limit of {most:,}", str(path))
    return path.read_bytes()


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of ``path`` with their ends; raises `OSError` if it is not a regular file, or a
    line is too long.
    """
    check_regular(path)
    with path.open("rb") as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                raise OSError(
                    errno.EFBIG,
                    f"a line is longer than the limit of {MAX_LINE_BYTES:,} bytes",
                    str(path),
                )
            yield line


def require_clock() -> None:
    """Refuse a clock that no ZIP archive can record, for archives that other packages write."""
    year = time.localtime(time.time()).tm_year
    if year < _FIRST_YEAR:
        raise MedtasksError(
            f"this machine's clock is in the year {year}, expected {_FIRST_YEAR} or later, as archives record no "
            "earlier time; set the clock."
        )


def canonical_json(value: Any, indent: int | None = None) -> str:
    """JSON with sorted keys and unescaped Unicode, refusing NaN: equal values give equal bytes.

    Names from the command line may have bytes that are not UTF-8, as lone surrogates: they become
    U+FFFD.
    """
    return well_formed(
        json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
    )


def short_hash(text: str) -> str:
    """First 16 hex digits of the SHA-256 of ``text``."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


def file_sha256(path: Path, progress: Callable[[int, int], None] | None = None) -> str:
    """SHA-256 of the regular file ``path``; ``progress`` is called with (bytes read, bytes in
    all).
    """
    size = check_regular(path)
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
            if progress is not None:
                progress(stream.tell(), size)
    return digest.hexdigest()


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary file to write; it atomically replaces ``path`` unless the block raises."""
    with temporary_beside(path) as folder:
        yield folder / path.name
        (folder / path.name).replace(path)


_TEMPORARY = ".tmp"
_TEMPORARY_NAME = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_TEMPORARY)}")


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """A new directory, to be renamed to ``target``; removed at the end if it still exists.

    It is in a hidden directory next to ``target`` that only this user can open, because a killed
    process leaves it behind and it may hold rows that must not be shared. The next call there
    removes what is no longer locked.
    """
    remove_abandoned(target.parent)
    with _locked(target.parent, fcntl.LOCK_SH):  # until it is locked itself, nobody removes it
        folder = Path(
            tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=_TEMPORARY)
        )
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
        left = [path for path in directory.iterdir() if _TEMPORARY_NAME.fullmatch(path.name)]
        if not left:
            return
        with _locked(directory, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
            for folder in left if is_locked else ():
                if not folder.is_symlink():
                    _remove_unless_locked(folder)


def _remove_unless_locked(folder: Path) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(directory: Path, how: int) -> Iterator[bool]:
    """Lock a directory for the block; whether that succeeded."""
    with contextlib.ExitStack() as stack:
        is_locked = False
        with contextlib.suppress(
            OSError
        ):  # it cannot be read, another process has it, or there are no locks
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, how)
            is_locked = True
        yield is_locked


def replace_directory(target: Path, new: Path) -> None:
    """Put the directory ``new`` in the place of ``target``, on the same file system, which is
    deleted if it exists.

    Readers, and crashes, find the old directory or the new one, never a mix: where kernel and file
    system cannot exchange two directories, ``target`` is moved aside for a moment, from which
    :func:`recover_directory` restores it. With an `OSError`, ``target`` is unchanged.
    """
    recover_directory(target)
    here, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    exchange = (
        getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform.startswith("linux") else None
    )
    if not target.exists():
        new.rename(target)
    elif exchange is None or exchange(here, os.fsencode(new), here, os.fsencode(target), both) != 0:
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


_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""What a file system without locks answers: then there is no protection against other processes."""


@contextlib.contextmanager
def held(target: Path, doing: str, otherwise: str = "") -> Iterator[None]:
    """Lock the directory ``target``, which need not exist, for the block, against other processes
    on this file system.

    If another process holds the lock, a hidden file that the system releases when a process is
    killed, a `UsageError` says by which ``target`` is being ``doing`` (``prepared``), and to wait
    ``otherwise`` to do something else. Where the file system has no locks, there is no such
    protection.
    """
    from filelock import FileLock, Timeout

    path = target.with_name(f".{target.name}.lock")
    lock = FileLock(
        path, blocking=False, fallback_to_soft=False
    )  # a soft lock outlives a killed process
    try:
        lock.acquire()
    except Timeout as error:
        by = ""
        with contextlib.suppress(OSError):
            by = path.read_text(encoding="utf-8")
        by = by or "another process"  # which has not written its name yet
        raise UsageError(f"{target}: is being {doing} by {by}; wait for it{otherwise}.") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        yield
        return
    try:
        since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        path.write_text(
            f"process {os.getpid()} on {socket.gethostname()} since {since}", encoding="utf-8"
        )
        yield
    finally:
        path.unlink(
            missing_ok=True
        )  # before releasing: whoever waits checks that the file it locked still exists
        lock.release()


def is_held(target: Path) -> bool:
    """Whether a process holds the lock of :func:`held` on ``target``; also if that cannot be
    known.
    """
    path = target.with_name(f".{target.name}.lock")
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # it is held, or the file system has no locks
        return True
    return False

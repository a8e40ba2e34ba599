"""File access: bounded reads, canonical JSON and hashes.

Only regular files up to a size limit are read: a named pipe or a device could block or never end,
and untrusted data must not exhaust memory. docs/data.md lists the limits.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from medtasks.core.errors import MedtasksError
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
"""The first year that a ZIP archive can record."""


def check_regular(path: Path) -> int:
    """The size in bytes of a regular file, or of the one that ``path`` links to; raises `OSError`
    for anything else.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        is_directory = stat.S_ISDIR(status.st_mode)
        kind = "a directory" if is_directory else "a named pipe, socket or device"
        raise OSError(errno.EINVAL, f"{kind}, expected a regular file", str(path))
    return status.st_size


def is_file(path: Path) -> bool:
    """Whether ``path`` is a regular file, or a link to one; False for a path that no file can
    have.
    """
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or has a NUL
        return False


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
                problem = f"a line is longer than the limit of {MAX_LINE_BYTES:,} bytes"
                raise OSError(errno.EFBIG, problem, str(path))
            yield line


def require_clock() -> None:
    """Refuse a clock that no ZIP archive can record, for archives that other packages write."""
    year = time.localtime(time.time()).tm_year
    if year < _FIRST_YEAR:
        raise MedtasksError(
            f"this machine's clock is in the year {year}, expected {_FIRST_YEAR} or later, "
            "as archives record no earlier time; set the clock."
        )


def canonical_json(value: Any, indent: int | None = None) -> str:
    """JSON with sorted keys and unescaped Unicode, refusing NaN: equal values give equal bytes.

    Names from the command line may have bytes that are not UTF-8, as lone surrogates: they become
    U+FFFD.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
    return well_formed(text)


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

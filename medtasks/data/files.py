"""Files that users name: only regular files are read, and none beyond a stated size.

A named pipe or a device in a file's place would block, or never end; and data of strangers must not fill the memory.
docs/data.md lists the limits.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "MAX_JSON_BYTES",
    "MAX_LINE_BYTES",
    "MAX_PICTURE_BYTES",
    "MAX_PIXELS",
    "MAX_UNPACKED_BYTES",
    "check_regular",
    "read_lines",
    "read_regular",
]

MAX_PIXELS = 89_478_485
"""Pixels of a picture or video frame: 256 MiB as RGB, the line at which Pillow begins to warn."""
MAX_PICTURE_BYTES = 256 * 2**20
"""Bytes of a picture file, on disk, in an archive or fetched."""
MAX_JSON_BYTES = 2**30
"""Bytes of a file that is read as a whole: JSON, CSV, spreadsheets, records."""
MAX_LINE_BYTES = 256 * 2**20
"""Bytes of one line of a JSONL file."""
MAX_UNPACKED_BYTES = 100 * 2**30
"""Bytes that the members of an archive may take together once they are unpacked."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


def check_regular(path: Path) -> int:
    """The size in bytes of the regular file ``path``; links are followed.

    Raises:
        OSError: there is none, or something else stands in its place; ``strerror`` says what.
    """
    status = path.stat()
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"{_KINDS.get(kind, 'not a file')}, expected a regular file", str(path))
    return status.st_size


def read_regular(path: Path, most: int = MAX_JSON_BYTES) -> bytes:
    """The content of the regular file ``path``, which has at most ``most`` bytes.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger; ``strerror`` says why.
    """
    size = check_regular(path)
    if size > most:
        raise OSError(errno.EFBIG, _too_large(size, most), str(path))
    return path.read_bytes()


def read_lines(path: Path, most: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The lines of the regular file ``path``, one at a time, each with its line break.

    Raises:
        OSError: the file cannot be read, is no regular file, or has a line of more than ``most`` bytes.
    """
    check_regular(path)
    with path.open("rb") as stream:
        while line := stream.readline(most + 1):
            if len(line) > most:
                raise OSError(errno.EFBIG, f"a line of more than {most:,} bytes, which is the most", str(path))
            yield line


def _too_large(size: int, most: int) -> str:
    return f"{size:,} bytes, more than the {most:,} that are read"

"""Downloaded archives: checked against the published one, and unpacked without leaving their directory."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from medtasks.catalog.records import is_path_below
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import MAX_JSON_BYTES, MAX_PICTURE_BYTES, check_regular, file_sha256
from medtasks.core.schema import shown

Progress = Callable[[int, int], None]
_BLOCK = 2**20
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError)
"""Errors of zipfile on damaged bytes, found by tests on tens of thousands of damaged archives."""


class Published(NamedTuple):
    """Size in bytes and SHA-256 of a published file."""

    size: int
    sha256: str


def check_published(path: Path, published: Published, *, allow_other: bool, progress: Progress | None = None) -> str:
    """SHA-256 of the file ``path``, which must be the published one unless ``allow_other``.

    Raises:
        UsageError: there is no such file.
        DataError: size or SHA-256 differ, and another archive was not allowed.
    """
    with reading(path, "give the downloaded archive", UsageError):
        size = check_regular(path)
        digest = "" if size != published.size and not allow_other else file_sha256(path, progress)
    if digest == published.sha256 or allow_other:
        return digest
    found, expected = f"SHA-256 {digest[:16]}…", f"{published.sha256[:16]}…"
    if not digest:
        found, expected = f"{size:,} bytes", f"{published.size:,}"
    raise DataError(
        f"{path}: is not the published archive: {found}, expected {expected}; fetch it again, or accept it with "
        "--allow-other-archive."
    )


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive in ``path``, after a check of all member names.

    Raises:
        DataError: it is not a ZIP archive, or a member is a link or has a name outside the archive's directory.
    """
    try:
        check_regular(path)
        archive = zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise DataError(f"{path}: not a complete ZIP archive ({error}); fetch it again.") from error
    with archive:
        for member in archive.infolist():
            is_drive = member.filename.partition("/")[0].endswith(":")
            if is_drive or not is_path_below(member.filename) or stat.S_ISLNK(member.external_attr >> 16):
                name = shown(member.filename)
                raise DataError(f"{path}: member {name} points outside the archive's directory; do not use it.")
        yield archive


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Content of the member ``name``, at most `MAX_JSON_BYTES`.

    Raises:
        DataError: there is none, it is larger, or its checksum is wrong.
    """
    try:
        member = archive.getinfo(name)
    except KeyError as error:
        raise DataError(f"{archive.filename}: has no {name}; give the published archive.") from error
    return b"".join(_content(archive, member, MAX_JSON_BYTES))


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
    """The blocks of a member, so that memory use does not depend on the size it states."""
    place = f"{archive.filename}: member {member.filename}"
    if member.file_size > most:
        raise DataError(f"{place} has {member.file_size:,} bytes, more than the limit of {most:,}; do not use it.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # zipfile unpacks others in one go
        raise DataError(f"{place} is compressed by method {member.compress_type}, expected deflate; compress it again.")
    try:
        with archive.open(member) as stream:
            while block := stream.read(_BLOCK):
                yield block
    except _DAMAGED as error:
        raise DataError(f"{place} is damaged ({error}); fetch the archive again.") from error


def extract(archive: zipfile.ZipFile, names: set[str], folder: Path, progress: Progress | None = None) -> None:
    """Unpack the members ``names`` below ``folder``; names that are not in the archive are skipped.

    Raises:
        DataError: a member is damaged or has more than `MAX_PICTURE_BYTES`, or cannot be written.
    """
    members = {member.filename: member for member in archive.infolist() if member.filename in names}
    try:
        for number, (name, member) in enumerate(sorted(members.items()), start=1):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.writelines(_content(archive, member, MAX_PICTURE_BYTES))
            if progress is not None:
                progress(number, len(members))
    except OSError as error:  # a full disk, a name that the file system does not take
        raise DataError(
            f"{error.filename or folder}: cannot be written ({error.strerror}); check the disk and the file's name."
        ) from error

"""ZIP archives of a release: checked against the published one, and read without trusting them."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medtasks.catalog.records import is_path_below
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import MAX_JSON_BYTES, MAX_PICTURE_BYTES, check_regular, file_sha256
from medtasks.core.schema import shown
from medtasks.data.progress import Progress

# Damaged bytes make zipfile raise each of these: tests feed it tens of thousands of such archives.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
)

# zipfile decompresses all other methods in one go, whatever the size of the result.
_READ_IN_BLOCKS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BLOCK_BYTES = 2**20


def check_published(
    path: Path, size: int, sha256: str, *, allow_other: bool, progress: Progress | None = None
) -> str:
    """Return the SHA-256 of an archive after comparing it with the published one.

    The archive is not hashed if its size alone shows that it is another one. ``allow_other``
    accepts any archive.

    Raises:
        UsageError: the file cannot be read.
        DataError: size or SHA-256 differ from the published ``size`` and ``sha256``.
    """
    with reading(path, "give the downloaded archive", UsageError):
        actual_size = check_regular(path)
        if actual_size != size and not allow_other:
            raise _not_published(path, f"{actual_size:,} bytes", f"{size:,}")
        digest = file_sha256(path, progress)
    if digest != sha256 and not allow_other:
        raise _not_published(path, f"SHA-256 {digest[:16]}…", f"{sha256[:16]}…")
    return digest


def _not_published(path: Path, actual: str, expected: str) -> DataError:
    """The error of an archive that differs from the published one in size or hash."""
    return DataError(
        f"{path}: is not the published archive: {actual}, expected {expected}; "
        "fetch it again, or accept it with --allow-other-archive."
    )


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the ZIP archive in ``path``.

    Raises:
        DataError: it is not a complete archive, or a member is a link or outside its directory.
    """
    try:
        check_regular(path)
        archive = zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise DataError(f"{path}: not a complete ZIP archive ({error}); fetch it again.") from error
    with archive:
        for member in archive.infolist():
            if _leaves_directory(member):
                raise DataError(
                    f"{path}: member {shown(member.filename)} points outside the archive's "
                    "directory; do not use it."
                )
        yield archive


def _leaves_directory(member: zipfile.ZipInfo) -> bool:
    """Whether a member, once unpacked, could be or point outside of the archive's directory."""
    first_part = member.filename.partition("/")[0]
    is_drive = first_part.endswith(":")
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    return is_drive or is_link or not is_path_below(member.filename)


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member, at most `MAX_JSON_BYTES`.

    Raises:
        DataError: the member is larger or damaged.
    """
    return b"".join(member_blocks(archive, name, MAX_JSON_BYTES))


def member_blocks(archive: zipfile.ZipFile, name: str, most: int) -> Iterator[bytes]:
    """Yield a member's content in blocks, at most ``most`` bytes in all.

    Memory use therefore does not depend on the size that the member states.

    Raises:
        DataError: the member is larger or damaged, or its compression has no such blocks.
    """
    member = archive.getinfo(name)
    place = f"{archive.filename}: member {name}"
    if member.file_size > most:
        raise DataError(
            f"{place} has {member.file_size:,} bytes, more than the limit of {most:,}; "
            "do not use it."
        )
    if member.compress_type not in _READ_IN_BLOCKS:
        raise DataError(
            f"{place} is compressed by method {member.compress_type}, expected deflate; "
            "compress it again."
        )
    try:
        with archive.open(member) as stream:
            while block := stream.read(_BLOCK_BYTES):
                yield block
    except _DAMAGED as error:
        raise DataError(f"{place} is damaged ({error}); fetch the archive again.") from error


def extract(
    archive: zipfile.ZipFile, names: set[str], folder: Path, progress: Progress | None = None
) -> None:
    """Unpack the members ``names`` below ``folder``.

    Raises:
        DataError: a member is damaged, or cannot be written.
    """
    try:
        for number, name in enumerate(sorted(names), start=1):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.writelines(member_blocks(archive, name, MAX_PICTURE_BYTES))
            if progress is not None:
                progress(number, len(names))
    except OSError as error:  # a full disk, or a name that the file system does not take
        raise DataError(
            f"{error.filename or folder}: cannot be written ({error.strerror}); "
            "check the disk and the file's name."
        ) from error

"""The formats of files with tables, recognised by content: the name of a file may be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.data.archives import open_archive
from medtasks.data.sources import ZIP_MARK, encoding_of, first_bytes


class TableFormat(Enum):
    """A format that :func:`medtasks.data.tables.read_table_file` reads."""

    CSV = "CSV or TSV"
    JSON = "JSON or JSONL"
    PARQUET = "Parquet"
    WORKBOOK = "an .xlsx workbook"


PARQUET_MARK = b"PAR1"
_UNREADABLE: Mapping[bytes, tuple[str, str]] = {
    b"\xd0\xcf\x11\xe0": (
        "an old .xls workbook, or one with a password",
        "save it as .xlsx without a password",
    ),
    b"\x1f\x8b": ("compressed with gzip", "unpack it"),
    b"\x28\xb5\x2f\xfd": ("compressed with Zstandard", "unpack it"),
}
"""Files that cannot be read, by their first bytes: what they are, and what to do."""
_FOREIGN_MEMBERS: Mapping[str, tuple[str, str]] = {
    "content.xml": ("an OpenDocument spreadsheet", "save it as .xlsx or .csv"),
    "xl/workbook.bin": ("a binary workbook (.xlsb)", "save it as .xlsx"),
}
"""Archives that cannot be read, by one of their members."""


def refuse_unreadable(path: Path, first: bytes, expected: str) -> None:
    """Refuse a file in a format that is not read, by its ``first`` bytes.

    ``expected`` is what the file should be, for the message.

    Raises:
        UsageError: the format is such one; the message names it and the fix.
    """
    for mark, (what, fix) in _UNREADABLE.items():
        if first.startswith(mark):
            raise UsageError(f"{path}: is {what}, expected {expected}; {fix}.")


def archive_members(path: Path, expected: str) -> list[str]:
    """The names of the files in an archive.

    Raises:
        UsageError: the archive is a spreadsheet in a format that is not read.
    """
    with open_archive(path) as archive:
        names = archive.namelist()
    if "xl/workbook.xml" in names:
        return names
    for member, (what, fix) in _FOREIGN_MEMBERS.items():
        if member in names:
            raise UsageError(f"{path}: is {what}, expected {expected}; {fix}.")
    return names


def format_of_table(path: Path) -> TableFormat:
    """The format of a table.

    Raises:
        UsageError: it is none of :class:`TableFormat`.
        DataError: the file cannot be read.
    """
    expected = "a table (CSV, TSV, JSON, JSONL, Parquet or .xlsx)"
    first = first_bytes(path)
    refuse_unreadable(path, first, expected)
    if first == PARQUET_MARK:
        return TableFormat.PARQUET
    if first == ZIP_MARK:
        if "xl/workbook.xml" in archive_members(path, expected):
            return TableFormat.WORKBOOK
        raise UsageError(f"{path}: is a ZIP archive, expected {expected}; unpack it.")
    return _text_format(path, encoding_of(first))


def _text_format(path: Path, encoding: str) -> TableFormat:
    """The format of a text by its first character that is not blank."""
    with path.open("rb") as stream:
        opening = stream.read(4096)
    text = opening.decode(encoding, errors="replace").lstrip()
    return TableFormat.JSON if text.startswith(("[", "{")) else TableFormat.CSV

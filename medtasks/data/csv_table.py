"""Reading CSV files that people or other programs wrote: every row with the line in which it begins."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from medtasks.data.records import Where
from medtasks.errors import DataError
from medtasks.files import read_regular

SHOWN = 60  # characters of a name in a message


def read_csv_rows(path: Path, delimiter: str = ",") -> list[tuple[Where, dict[str, str]]]:
    """The rows below the header, by column name (without blanks around it); lines that hold nothing are left out.

    Raises:
        DataError: the file cannot be read, is no UTF-8 or no CSV, has no header or no row, a name twice in its header,
            or a row with another number of cells; the message names file, line and fix.
    """
    lines = _cells(path, _text_of(path), delimiter)
    if not lines:
        raise DataError(f"{path}: the file is empty, expected a header and one row each; write or fetch it again.")
    where, header = lines[0]
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{where}: column {twice[0][:SHOWN]!r} stands in the header twice, expected once; rename one.")
    rows = []
    for where, cells in lines[1:]:
        if len(cells) != len(names):
            raise DataError(
                f"{where}: found {len(cells)} cells, expected {len(names)} as in the header; quote cells that hold "
                "commas or line breaks."
            )
        rows.append((where, dict(zip(names, cells, strict=True))))
    if not rows:
        raise DataError(f"{path}: the file has a header alone, expected rows below it; write or fetch it again.")
    return rows


def _text_of(path: Path) -> str:
    try:
        data = read_regular(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = Where(path.name, data.count(b"\n", 0, error.start) + 1)
        byte = data[error.start]
        raise DataError(f"{where}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8.") from error


def _cells(path: Path, text: str, delimiter: str) -> list[tuple[Where, list[str]]]:
    """Rows that are not blank, each with the line in which it begins."""
    before = csv.field_size_limit(max(len(text), 131072))  # a long response is no error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, start = [], 1
    try:
        for cells in reader:
            if cells:
                rows.append((Where(path.name, start), cells))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{Where(path.name, start)}: not CSV ({error}); fix the row that begins there.") from error
    finally:
        csv.field_size_limit(before)
    return rows

"""Reader of CSV and TSV files; every row comes with its place in the file."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError
from medtasks.data.sources import SourceRow, content_of, decoded

_SEPARATOR_LINE = re.compile(
    r'\s*"?sep=(?P<separator>[,;\t|:])"?[ ,;\t]*(?:\r\n|[\r\n])', re.IGNORECASE
)


def separator_of(text: str) -> tuple[str, int]:
    """The separator of the columns of a CSV text, and the position at which its header begins.

    A first line such as ``sep=;``, which spreadsheet programs write and read, states the separator;
    otherwise it is a comma, or a tab or semicolon if the header has more of these.
    """
    statement = _SEPARATOR_LINE.match(text)
    if statement is not None:
        return statement["separator"], statement.end()
    header = next(iter(text.lstrip().splitlines()), "")
    return max(",\t;", key=header.count), 0


def read_csv_rows(path: Path) -> list[SourceRow]:
    """The rows of a CSV file with a header, as strings; a row may span lines.

    Columns are separated as :func:`separator_of` finds. Rows of blank cells alone are skipped, as
    spreadsheet programs write them below a table.

    Raises:
        DataError: the file is empty or not CSV, a row has another number of cells than the header,
            or repeats the header; names line and fix.
    """
    text = decoded(content_of(path), path.name)
    if "\0" in text:
        raise DataError(
            f"{path}: contains NUL characters, as UTF-16 without its mark does; "
            "save the file as UTF-8 (in Excel: CSV UTF-8)."
        )
    # a long response is not an error
    size_limit = csv.field_size_limit(max(len(text), 131072))
    try:
        return _csv_rows(text, path)
    finally:
        csv.field_size_limit(size_limit)


def _csv_rows(text: str, path: Path) -> list[SourceRow]:
    """The rows of a CSV text, each with the line at which it begins; empty lines are skipped."""
    delimiter, begin = separator_of(text)
    skipped = len(text[:begin].splitlines())
    reader = csv.reader(io.StringIO(text[begin:], newline=""), delimiter=delimiter, strict=True)
    columns: list[str] = []
    rows: list[SourceRow] = []
    where = Where(path.name, 1 + skipped)
    try:
        for cells in reader:
            if not columns:
                columns = _header(cells, where)
            elif any(cell.strip() for cell in cells):
                rows.append(SourceRow(where, _csv_row(columns, cells, where)))
            where = Where(path.name, skipped + reader.line_num + 1)
    except csv.Error as error:
        raise DataError(f"{where}: not CSV ({error}); fix the row that begins there.") from error
    if not rows:
        raise _error_without_rows(path, columns)
    return rows


def _error_without_rows(path: Path, columns: Sequence[str]) -> DataError:
    """The error of a CSV file that has only a header, or not even one."""
    if columns:
        return DataError(
            f"{path}: the file has only a header, expected rows below it; write or fetch it again."
        )
    return DataError(
        f"{path}: the file is empty, expected a header and rows; write or fetch it again."
    )


def _header(cells: Sequence[str], where: Where) -> list[str]:
    """The names of the columns, without blanks around them; no names if all are blank.

    Two equal names are an error.
    """
    columns = [name.strip() for name in cells]
    if not any(columns):
        return []
    require_distinct(columns, where)
    return with_all_named(columns)


def with_all_named(columns: Iterable[str]) -> list[str]:
    """The names of columns, where those without a name are ``(column 3)``: pandas writes the index
    of a table without a name.
    """
    return [name or f"(column {number})" for number, name in enumerate(columns, start=1)]


def require_distinct(columns: Iterable[str], where: Where) -> None:
    """Raise :class:`DataError` if two columns of a header have the same name that is not blank."""
    for name, count in sorted(Counter(columns).items()):
        if name and count > 1:
            raise DataError(
                f"{where}: column {name[:60]!r} is duplicated in the header; rename one."
            )


def _csv_row(columns: Sequence[str], cells: Sequence[str], where: Where) -> dict[str, str]:
    """The cells of a row by their columns; another number of cells is an error."""
    if len(cells) != len(columns):
        raise DataError(
            f"{where}: found {len(cells)} cells, expected {len(columns)} as in the header; "
            "quote cells with commas or line breaks."
        )
    if len(columns) > 1 and [cell.strip() for cell in cells] == list(columns):
        raise DataError(f"{where}: the header is repeated; delete this line.")
    return dict(zip(columns, cells, strict=True))

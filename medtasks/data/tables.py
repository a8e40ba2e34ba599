"""Tables of questions in any common format, whose cells are texts as their author sees them.

CSV, TSV (also in VLMEvalKit's layout), JSON, JSONL, Parquet and ``.xlsx`` give the same rows for
the same table. Texts are not changed: no cell is stripped, and none becomes a number, a date or a
null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from medtasks.core.errors import DataError
from medtasks.data.csv_rows import read_csv_rows
from medtasks.data.json_rows import read_json_rows
from medtasks.data.lost_text import LostText, text_or_lost
from medtasks.data.parquet import read_parquet
from medtasks.data.sources import SourceRow
from medtasks.data.table_formats import TableFormat, format_of_table
from medtasks.data.workbooks import read_workbook, sheet_names

Cell: TypeAlias = str | bytes | tuple[bytes, ...] | LostText
"""A text (empty without a value), the file of a picture, those of several pictures, or what a
spreadsheet has in place of a text. Lists and objects in JSON and Parquet are texts of JSON, as in
CSV.
"""

_EMPTY_OF_DATA_FRAMES = frozenset(("NaN", "nan", "<NA>"))
"""What data frames write as a text for a cell without a value, if they are told to."""


@dataclass(frozen=True)
class SourceTable:
    """The rows of a file.

    Attributes:
        file: the name of the file.
        columns: names in order of appearance; a column without a name is ``(column 3)``.
        rows: at least one row, with a `Cell` by column; in JSONL, columns may be absent.
        other_sheets: the names of a workbook's sheets that are not read.
    """

    file: str
    columns: tuple[str, ...]
    rows: tuple[SourceRow, ...]
    other_sheets: tuple[str, ...] = ()


def read_table_file(path: Path) -> SourceTable:
    """The table in a file, whose format is recognised by its content.

    Raises:
        UsageError: the format is not read.
        DataError: the file cannot be read, or has no rows; names file, line and fix.
    """
    table_format = format_of_table(path)
    rows = _source_rows(path, table_format)
    files: dict[bytes, bytes] = {}
    table_rows: list[SourceRow] = []
    for where, row in rows:
        cells = {str(name).strip(): _cell(value, files) for name, value in row.items()}
        table_rows.append(SourceRow(where, cells))
    if not table_rows:
        raise DataError(f"{path}: the table has no rows; write or fetch it again.")
    columns = _columns(table_rows)
    sheets = sheet_names(path) if table_format is TableFormat.WORKBOOK else ()
    return SourceTable(
        file=path.name,
        columns=columns,
        rows=tuple(_with_columns(row, columns) for row in table_rows),
        other_sheets=tuple(sheets[1:]),
    )


def _source_rows(path: Path, table_format: TableFormat) -> Iterable[SourceRow]:
    """The rows of a table as its format has them."""
    match table_format:
        case TableFormat.CSV:
            return read_csv_rows(path)
        case TableFormat.PARQUET:
            return read_parquet(path)
        case TableFormat.WORKBOOK:
            return read_workbook(path, as_displayed=True)
        case TableFormat.JSON:
            return read_json_rows(path, is_row=lambda _: False)


def _columns(rows: Iterable[SourceRow]) -> tuple[str, ...]:
    """The columns of all rows, without those that have neither a name nor a value."""
    columns: dict[str, None] = {}
    for row in rows:
        for name, cell in row.row.items():
            if name not in columns and not (_is_unnamed(name) and not cell):
                columns[name] = None
    return tuple(columns)


def _with_columns(row: SourceRow, columns: Collection[str]) -> SourceRow:
    """The row with its cells in these columns."""
    cells = {name: cell for name, cell in row.row.items() if name in columns}
    return SourceRow(row.where, cells)


def _is_unnamed(column: str) -> bool:
    """Whether a column has no name in its file."""
    return column.startswith("(column ") or not column


# --- cells ---


def _cell(value: Any, files: dict[bytes, bytes]) -> Cell:
    """The cell for a value in a row of any format.

    ``files`` has the pictures of earlier rows: equal ones are kept in memory once.
    """
    if isinstance(value, str):
        if value.strip() in _EMPTY_OF_DATA_FRAMES:
            return LostText(f"{value.strip()}, which data frames write for an empty cell")
        return text_or_lost(value)
    if isinstance(value, LostText):
        return value
    if isinstance(value, bytes):
        return files.setdefault(value, value)
    if isinstance(value, Mapping) and set(value) == {"bytes", "path"}:
        data = value["bytes"]
        return _cell(value["path"] if data is None else data, files)
    if isinstance(value, list) and value:
        cells = [_cell(item, files) for item in value]
        pictures = tuple(cell for cell in cells if isinstance(cell, bytes))
        if len(pictures) == len(cells):
            return pictures
    return _text_of(value)


def _text_of(value: Any) -> str:
    """The text of a value that is neither a text nor a picture; empty for null and NaN."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _text_of_float(value)
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, default=_text_of)
    return str(value)


def _text_of_float(value: float) -> str:
    """The text of a number, without decimals if it is whole: data frames have numbers such as 1.0
    where a cell of the column is empty.
    """
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else str(value)

"""Readers of JSONL, JSON, concatenated JSON, CSV and Parquet files; every row comes with its place in the file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import TypeAdapter

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, reading
from medtasks.core.files import check_regular, read_lines, read_regular
from medtasks.core.schema import shown

T = TypeVar("T")


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {shown(next(key for key in keys if keys.count(key) > 1))} is repeated")
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_with_distinct_keys)
"""Python's own keeps the last value of a repeated key."""


class SourceRow(NamedTuple):
    """One row with its place."""

    where: Where
    row: Mapping[str, Any]


def read_jsonl(path: Path) -> Iterator[SourceRow]:
    """Rows of a JSONL file; blank lines are skipped.

    Raises:
        DataError: the file is missing, empty, not UTF-8, or a line is not a JSON object; names line and column.
    """
    empty = True
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        empty = False
        where = Where(path.name, number)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{where}: byte {error.start + 1} is 0x{line[error.start]:02x}, which is not UTF-8; "
                "save the file as UTF-8."
            ) from error
        with _reported(where, ", expected one object per line; fix the line"):
            row = _DECODER.decode(text)
        yield _object(row, where)
    if empty:
        raise DataError(f"{path}: the file is empty, expected one JSON object per line; fetch it again.")


def _lines(path: Path) -> Iterator[bytes]:
    with reading(path, "check the path"):
        yield from read_lines(path)


@contextmanager
def _reported(where: Where, fix: str, *, lines: bool = False) -> Iterator[None]:
    """Turn errors of the decoder into a `DataError`; ``lines`` if they have a line of their own."""
    try:
        yield
    except json.JSONDecodeError as error:
        place = f"{where.file}, line {error.lineno}" if lines else str(where)
        raise DataError(f"{place}, column {error.colno}: not valid JSON ({error.msg}){fix}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise DataError(f"{where}: not readable JSON ({error}); fix it.") from error


def _object(row: Any, where: Where) -> SourceRow:
    if not isinstance(row, dict):
        raise DataError(f"{where}: found {type(row).__name__}, expected a JSON object; fix it.")
    return SourceRow(where, row)


def read_json_list(data: bytes, file: str) -> Iterator[SourceRow]:
    """Rows of a JSON file with one list of objects, parsed one at a time; ``file`` names it in messages.

    Raises:
        DataError: the content is not UTF-8, not valid JSON, not a list, or an entry is not an object.
    """
    text = _decoded(data, file)
    position = _after_blanks(text, 0)
    found, number = text[position : position + 1], 0
    position = _after_blanks(text, position + 1)
    expected = "expected a list with at least one object"
    if found != "[" or text[position : position + 1] == "]":
        what = "an empty list" if found == "[" else shown(text[:20])
        raise DataError(f"{file}: found {what}, {expected}; fetch it again.")
    while found != "]":
        number += 1
        where = Where(file, number, unit="row")
        with _reported(where, f", {expected}; fetch it again", lines=True):
            row, position = _DECODER.raw_decode(text, position)
            at = _after_blanks(text, position)
            found, position = text[at : at + 1], _after_blanks(text, at + 1)
            if found not in ("]", ",") or (found == "]" and position < len(text)):
                raise json.JSONDecodeError("Expecting ',' or the end of the list", text, at)
        yield _object(row, where)


def read_json_stream(data: bytes, file: str) -> Iterator[SourceRow]:
    """Concatenated JSON objects, each on one or more lines; ``file`` names them in messages.

    Some releases name such files ``.jsonl``. A row's line is that of its opening brace.

    Raises:
        DataError: the content is empty, not UTF-8, or something in it is not a JSON object.
    """
    text = _decoded(data, file)
    position, line = _after_blanks(text, 0), 1
    line += text.count("\n", 0, position)
    if position == len(text):
        raise DataError(f"{file}: the file is empty, expected JSON objects; fetch it again.")
    while position < len(text):
        where = Where(file, line)
        fix = f" in the object that begins in line {line}; fix it, or fetch the file again"
        with _reported(where, fix, lines=True):
            row, end = _DECODER.raw_decode(text, position)
        yield _object(row, where)
        following = _after_blanks(text, end)
        line += text.count("\n", position, following)
        position = following


def separator_of(header: str) -> str:
    """What separates the columns of a header: commas, or tabs or semicolons if there are more of these."""
    return max(",\t;", key=header.count)


def read_csv_rows(path: Path) -> list[SourceRow]:
    """The rows below the header by (stripped) column name, each with its first line; blank lines are skipped.

    Columns are separated as :func:`separator_of` finds.

    Raises:
        DataError: the file cannot be read, is not UTF-8 or not CSV, has no header, no rows, a duplicate column, or a
            row with another number of cells; the message names file, line and fix.
    """
    with reading(path, "check the path"):
        text = _decoded(read_regular(path), path.name)
    before = csv.field_size_limit(max(len(text), 131072))  # a long response is no error
    delimiter = separator_of(next(iter(text.lstrip().splitlines()), ""))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, start = [], 1
    try:
        for cells in reader:
            if cells:
                lines.append((Where(path.name, start), cells))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{Where(path.name, start)}: not CSV ({error}); fix the row that begins there.") from error
    finally:
        csv.field_size_limit(before)
    if not lines:
        raise DataError(f"{path}: the file is empty, expected a header and rows; write or fetch it again.")
    where, header = lines[0]
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{where}: column {twice[0][:60]!r} is duplicated in the header; rename one.")
    rows = []
    for where, cells in lines[1:]:
        if len(cells) != len(names):
            raise DataError(
                f"{where}: found {len(cells)} cells, expected {len(names)} as in the header; quote cells with "
                "commas or line breaks."
            )
        rows.append(SourceRow(where, dict(zip(names, cells, strict=True))))
    if not rows:
        raise DataError(f"{path}: the file has only a header, expected rows below it; write or fetch it again.")
    return rows


def read_parquet(path: Path) -> Iterator[SourceRow]:
    """The rows of a parquet file, read in small batches, pictures as they are stored; raises :class:`DataError`."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    number = 0
    try:
        check_regular(path)
        for batch in pq.ParquetFile(path).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield SourceRow(Where(path.name, number, unit="row"), row)
    except (OSError, ValueError, KeyError, NotImplementedError) as error:  # pyarrow's errors derive from these
        raise DataError(f"{path}: not a readable parquet file ({error}); fetch it again.") from error


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _decoded(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8."
        ) from error


def read_table(module: str, name: str, kind: type[T]) -> T:
    """Our YAML file ``name``, which lies beside the code in the file ``module``, as a ``kind``."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 20 times as fast
    return TypeAdapter(kind).validate_python(yaml.load(Path(module).with_name(name).read_bytes(), loader))

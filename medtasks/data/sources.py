"""Readers of JSON and CSV files; every row comes with its place in the file."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import TypeAdapter

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, reading
from medtasks.core.files import check_regular, read_regular
from medtasks.core.schema import shown

T = TypeVar("T")

ZIP_MARK = b"PK\x03\x04"
"""The first bytes of a ZIP archive, as workbooks and Inspect's logs are."""


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key {shown(next(key for key in keys if keys.count(key) > 1))} is repeated"
        )
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_with_distinct_keys)


class SourceRow(NamedTuple):
    """One row with its place."""

    where: Where
    row: Mapping[str, Any]


def content_of(path: Path) -> bytes:
    """The content of a file; raises :class:`DataError` if it cannot be read."""
    with reading(path, "check the path"):
        return read_regular(path)


def first_bytes(path: Path) -> bytes:
    """The first four bytes of a file; raises :class:`DataError` if it cannot be read."""
    with reading(path, "check the path"):
        check_regular(path)
        with path.open("rb") as stream:
            return stream.read(4)


def read_jsonl(path: Path) -> Iterator[SourceRow]:
    """Rows of a JSONL or JSON file, as :func:`read_json` reads them; also raises if the file cannot
    be read.
    """
    yield from read_json(content_of(path), path.name)


def read_json(data: bytes, file: str) -> Iterator[SourceRow]:
    """The objects of a list, or objects one after the other, each on one or more lines; ``file`` is
    for messages. A row's place is its number in the list, or else the line of its opening brace.

    Raises:
        DataError: the content is empty, not UTF-8, not valid JSON, or a row is not an object.
    """
    text = decoded(data, file)
    position = _after_blanks(text, 0)
    listed = text.startswith("[", position)
    number, line = 0, 1 + text.count("\n", 0, position)
    if listed:
        position = _after_blanks(text, position + 1)
    if text[position:].rstrip() in ("", "]" if listed else ""):
        raise DataError(
            f"{file}: the file is empty, expected at least one JSON object; fetch it again."
        )
    while listed or position < len(text):
        number += 1
        where = Where(file, number, unit="row") if listed else Where(file, line)
        try:
            row, end = _DECODER.raw_decode(text, position)
            following = _after_blanks(text, end)
            if listed and text.startswith(",", following):
                following = _after_blanks(text, following + 1)
            elif listed and text[following:].rstrip() == "]":
                listed, following = False, len(text)
            elif listed:
                raise json.JSONDecodeError("Expecting ',' or the end of the list", text, following)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{file}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg}) in the object that "
                f"begins in {where.unit} {where.line}; fix it, or fetch the file again."
            ) from error
        except (
            ValueError,
            RecursionError,
        ) as error:  # a number of thousands of digits, thousands of brackets
            raise DataError(f"{where}: not readable JSON ({error}); fix it.") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: found {type(row).__name__}, expected a JSON object; fix it.")
        yield SourceRow(where, row)
        line += text.count("\n", position, following)
        position = following


_SEPARATOR_LINE = re.compile(
    r'\s*"?sep=(?P<separator>[,;\t|:])"?[ ,;\t]*(?:\r\n|[\r\n])', re.IGNORECASE
)


def separator_of(text: str) -> tuple[str, int]:
    """What separates the columns of a CSV text, and where its header begins.

    It is what a first line such as ``sep=;`` says, which spreadsheet programs write and read; else
    commas, or tabs or semicolons if the header has more of these.
    """
    stated = _SEPARATOR_LINE.match(text)
    if stated is not None:
        return stated["separator"], stated.end()
    header = next(iter(text.lstrip().splitlines()), "")
    return max(",\t;", key=header.count), 0


def read_csv_rows(path: Path) -> list[SourceRow]:
    """The rows of a CSV file with a header, as strings, separated as :func:`separator_of` finds; a
    row may span lines. What is wrong is a :class:`DataError` with file, line and fix.
    """
    text = decoded(content_of(path), path.name)
    before = csv.field_size_limit(max(len(text), 131072))  # a long response is no error
    delimiter, begin = separator_of(text)
    skipped = len(text[:begin].splitlines())
    reader = csv.reader(io.StringIO(text[begin:], newline=""), delimiter=delimiter, strict=True)
    names, rows, where = list[str](), list[SourceRow](), Where(path.name, 1 + skipped)
    try:
        for cells in reader:
            if cells and not names:
                names = [name.strip() for name in cells]
                if twice := sorted({name for name in names if names.count(name) > 1}):
                    raise DataError(
                        f"{where}: column {twice[0][:60]!r} is duplicated in the header; rename one."
                    )
            elif len(cells) not in (0, len(names)):
                raise DataError(
                    f"{where}: found {len(cells)} cells, expected {len(names)} as in the header; quote cells with "
                    "commas or line breaks."
                )
            elif cells:
                rows.append(SourceRow(where, dict(zip(names, cells, strict=True))))
            where = Where(path.name, skipped + reader.line_num + 1)
    except csv.Error as error:
        raise DataError(f"{where}: not CSV ({error}); fix the row that begins there.") from error
    finally:
        csv.field_size_limit(before)
    if not rows:
        found, expected = (
            ("has only a header", "rows below it") if names else ("is empty", "a header and rows")
        )
        raise DataError(f"{path}: the file {found}, expected {expected}; write or fetch it again.")
    return rows


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings other than UTF-8 by the mark at the beginning of a file; the mark of UTF-32 begins like
that of UTF-16.
"""


def encoding_of(data: bytes) -> str:
    """The encoding of a file by its first four bytes, UTF-8 without a mark."""
    return next(
        (encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), "utf-8-sig"
    )


def decoded(data: bytes, file: str) -> str:
    """The text of a file that is in UTF-8, or begins with the mark of UTF-16 or UTF-32.

    Raises:
        DataError: it is not; names the line.
    """
    if data.startswith(ZIP_MARK):
        raise DataError(
            f"{file}: a ZIP archive or a workbook, expected text; unpack it, or save it as CSV."
        )
    encoding = encoding_of(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        name = encoding.removesuffix("-sig").upper()
        raise DataError(
            f"{file}, line {line}: byte 0x{data[error.start]:02x} is not {name}; save the file as UTF-8."
        ) from error


def read_table(module: str, name: str, kind: type[T]) -> T:
    """Our YAML file ``name``, which lies beside the code in the file ``module``, as a ``kind``."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 20 times as fast
    return TypeAdapter(kind).validate_python(
        yaml.load(Path(module).with_name(name).read_bytes(), loader)
    )

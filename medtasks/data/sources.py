"""Readers of text and JSON files; every row comes with its place in the file."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """The object of these keys and values; a repeated key is an error, as one would be lost."""
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    counts = Counter(key for key, _ in pairs)
    first_repeated = next(key for key in fields if counts[key] > 1)
    raise ValueError(f"the key {shown(first_repeated)} is repeated")


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
    """Yield the rows of a JSONL or JSON file, as :func:`read_json` reads them.

    Raises:
        DataError: also if the file cannot be read.
    """
    yield from read_json(content_of(path), path.name)


def read_json(data: bytes, file: str) -> Iterator[SourceRow]:
    """Yield the objects of a list, or objects one after the other, each on one or more lines.

    A row's place is its number in the list, or else the line of its opening brace; ``file`` is for
    messages.

    Raises:
        DataError: the content is empty, not UTF-8, not valid JSON, or a row is not an object.
    """
    text = decoded(data, file)
    position = _after_blanks(text, 0)
    if text.startswith("[", position):
        return _objects_of_list(text, _after_blanks(text, position + 1), file)
    return _objects_in_sequence(text, position, file)


def _objects_of_list(text: str, position: int, file: str) -> Iterator[SourceRow]:
    """Yield the objects of a list whose first one is at ``position``."""
    if text[position:].rstrip() in ("", "]"):
        raise _empty_file(file)
    number = 0
    following: int | None = position
    while following is not None:
        number += 1
        where = Where(file, number, unit="row")
        with _json_errors(where):
            row, end = _DECODER.raw_decode(text, following)
            following = _next_in_list(text, end)
        yield SourceRow(where, _require_object(row, where))


def _next_in_list(text: str, end: int) -> int | None:
    """The position of the item after one that ends at ``end``; None if the list ends there."""
    position = _after_blanks(text, end)
    if text.startswith(",", position):
        return _after_blanks(text, position + 1)
    if text[position:].rstrip() == "]":
        return None
    raise json.JSONDecodeError("Expecting ',' or the end of the list", text, position)


def _objects_in_sequence(text: str, position: int, file: str) -> Iterator[SourceRow]:
    """Yield the objects of a text, the first of which is at ``position``."""
    if position == len(text):
        raise _empty_file(file)
    line = 1 + text.count("\n", 0, position)
    while position < len(text):
        where = Where(file, line)
        with _json_errors(where):
            row, end = _DECODER.raw_decode(text, position)
        yield SourceRow(where, _require_object(row, where))
        following = _after_blanks(text, end)
        line += text.count("\n", position, following)
        position = following


@contextmanager
def _json_errors(where: Where) -> Iterator[None]:
    """Turn errors of decoding the object at ``where`` into a :class:`DataError`."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where.file}, line {error.lineno}, column {error.colno}: not valid JSON "
            f"({error.msg}) in the object that begins in {where.unit} {where.line}; fix it, or "
            "fetch the file again."
        ) from error
    # A repeated key, a number of thousands of digits, or thousands of nested brackets
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not readable JSON ({error}); fix it.") from error


def _require_object(row: Any, where: Where) -> dict[str, Any]:
    """``row``, which must be a JSON object."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: found {type(row).__name__}, expected a JSON object; fix it.")
    return row


def _empty_file(file: str) -> DataError:
    """The error of a JSON file without objects."""
    return DataError(
        f"{file}: the file is empty, expected at least one JSON object; fetch it again."
    )


def _after_blanks(text: str, position: int) -> int:
    """The position of the first character from ``position`` on that is not a blank."""
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
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return encoding
    return "utf-8-sig"


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
            f"{file}, line {line}: byte 0x{data[error.start]:02x} is not {name}; "
            "save the file as UTF-8 (in Excel: CSV UTF-8)."
        ) from error


def read_table(module: str, name: str, kind: type[T]) -> T:
    """Our YAML file ``name``, which lies beside the code in the file ``module``, as a ``kind``."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 20 times as fast
    text = Path(module).with_name(name).read_bytes()
    return TypeAdapter(kind).validate_python(yaml.load(text, loader))

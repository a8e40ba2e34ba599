"""Rows in JSON: objects one after the other, one list, or the list in the only object of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.sources import SourceRow, read_jsonl

Row = Mapping[str, Any]


def read_json_rows(path: Path, is_row: Callable[[Row], bool]) -> Iterable[SourceRow]:
    """The rows of a JSON or JSONL file, or of the list in its only object.

    ``is_row`` tells whether a file's first object is a row in any case.

    Raises:
        DataError: as `read_jsonl`, or the only object has several lists of objects.
    """
    rows = read_jsonl(path)
    first = next(rows)
    if is_row(first.row):
        return chain((first,), rows)
    rest = [*rows]
    lists = {} if rest else _lists_of_objects(first.row)
    if not lists:
        return chain((first,), rest)
    if len(lists) > 1:
        raise DataError(
            f"{path}: its only object has several lists of objects "
            f"({first_names(map(shown, lists))}), expected one, that of the rows; write it alone."
        )
    ((name, members),) = lists.items()
    return _numbered(members, f"{path.name}, list {name[:40]!r}")


def _lists_of_objects(row: Row) -> dict[str, list[Row]]:
    """The fields that are lists of objects, and not empty."""
    lists = {}
    for name, value in row.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            lists[name] = value
    return lists


def _numbered(rows: Iterable[Row], file: str) -> Iterator[SourceRow]:
    """The rows with their places, numbered from 1."""
    for number, row in enumerate(rows, start=1):
        yield SourceRow(Where(file, number, unit="row"), row)

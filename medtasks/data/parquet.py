"""Parquet files read in small batches: neither pictures nor files that expand fill the memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError
from medtasks.core.files import MAX_PICTURE_BYTES, check_regular
from medtasks.core.text import one_line, shortened
from medtasks.data.sources import SourceRow

_ROWS = 64
"""Rows that are in memory at a time, if they are small."""
_BATCH_BYTES = 64 * 2**20
"""Bytes that the cells of one column may have in memory at a time."""
_EXPANSION = 100
"""The limit of a column's expanded size, in multiples of its bytes in the file.

It applies to columns that exceed the limit of a picture.
"""
_SOME_ROWS = 1_000_000
"""So many rows are accepted whatever the size of the file."""

_UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    NotImplementedError,
)
"""Errors that pyarrow raises on damaged files."""


def read_parquet(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a parquet file, read in small batches, pictures as they are stored.

    Raises:
        DataError: the file cannot be read, or a column would expand beyond bounds.
    """
    import pyarrow.parquet as pq

    number = 0
    try:
        size = check_regular(path)
        with pq.ParquetFile(path) as file:
            _refuse_expansion(path, size, file.metadata)
            for batch in file.iter_batches(batch_size=_batch_rows(file.metadata)):
                for row in batch.to_pylist():
                    number += 1
                    yield SourceRow(Where(path.name, number, unit="row"), row)
    except _UNREADABLE as error:
        reason = one_line(shortened(str(error), 200)) or type(error).__name__
        raise DataError(
            f"{path}: not a readable parquet file ({reason}); fetch it again."
        ) from error


def _columns(metadata: Any) -> Iterator[Any]:
    """The columns of all row groups."""
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            yield metadata.row_group(group).column(column)


def _refuse_expansion(path: Path, size: int, metadata: Any) -> None:
    """Refuse a file of ``size`` bytes whose rows or cells would expand beyond bounds."""
    if metadata.num_rows > max(_SOME_ROWS, size):
        raise DataError(
            f"{path}: {size:,} bytes expand to {metadata.num_rows:,} rows; do not use it."
        )
    for column in _columns(metadata):
        stored, expanded = column.total_compressed_size, column.total_uncompressed_size
        if expanded <= MAX_PICTURE_BYTES:
            continue
        cell = expanded // max(1, column.num_values)
        if expanded > _EXPANSION * stored or cell > MAX_PICTURE_BYTES:
            raise DataError(
                f"{path}: column {column.path_in_schema} expands from {stored:,} to {expanded:,} "
                f"bytes, {cell:,} a cell, more than the limit of {MAX_PICTURE_BYTES:,}; "
                "do not use it."
            )


def _batch_rows(metadata: Any) -> int:
    """The number of rows that are read at a time.

    One cell in a dictionary may be repeated in every row of a batch, so it may be a single row.
    """
    largest = max((column.total_uncompressed_size for column in _columns(metadata)), default=0)
    return max(1, min(_ROWS, _BATCH_BYTES // max(1, largest)))

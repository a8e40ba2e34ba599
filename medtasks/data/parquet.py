"""Parquet files read in small batches: neither pictures nor files that expand fill the memory."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    import duckdb
    import pyarrow.parquet as pq

    number = 0
    try:
        size = check_regular(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            _refuse_rows(path, size, file.metadata.num_rows)
            chunks = _column_chunks(path)
            for chunk in chunks:
                _refuse_expansion(path, chunk)
            for batch in file.iter_batches(batch_size=_batch_rows(chunks)):
                for row in batch.to_pylist():
                    number += 1
                    yield SourceRow(Where(path.name, number, unit="row"), row)
    except (*_UNREADABLE, duckdb.Error) as error:
        reason = one_line(shortened(str(error), 200)) or type(error).__name__
        raise DataError(
            f"{path}: not a readable parquet file ({reason}); fetch it again."
        ) from error


@dataclass(frozen=True)
class _ColumnChunk:
    """A column of one row group: its values, and its bytes in the file and in memory."""

    column: str
    values: int
    stored: int
    expanded: int


_CHUNKS = """
select path_in_schema, num_values, total_compressed_size, total_uncompressed_size
from parquet_metadata($file)
"""


def _column_chunks(path: Path) -> list[_ColumnChunk]:
    """The columns of all row groups, as the file's footer describes them.

    DuckDB reads the footer: on damaged ones, pyarrow's description of a column ends the process.

    Raises:
        duckdb.Error: the footer is damaged.
    """
    import duckdb

    # a pattern, because a path may have characters that patterns give a meaning
    parameters = {"file": glob.escape(str(path.resolve()))}
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as database:
        rows = database.execute(_CHUNKS, parameters).fetchall()
    return [_ColumnChunk(*row) for row in rows]


def _refuse_rows(path: Path, size: int, rows: int) -> None:
    """Refuse a file of ``size`` bytes that has far more rows."""
    if rows > max(_SOME_ROWS, size):
        raise DataError(f"{path}: {size:,} bytes expand to {rows:,} rows; do not use it.")


def _refuse_expansion(path: Path, chunk: _ColumnChunk) -> None:
    """Refuse a file with a column whose cells would expand beyond bounds."""
    if chunk.expanded <= MAX_PICTURE_BYTES:
        return
    cell = chunk.expanded // max(1, chunk.values)
    if chunk.expanded > _EXPANSION * chunk.stored or cell > MAX_PICTURE_BYTES:
        raise DataError(
            f"{path}: column {chunk.column} expands from {chunk.stored:,} to {chunk.expanded:,} "
            f"bytes, {cell:,} a cell, more than the limit of {MAX_PICTURE_BYTES:,}; "
            "do not use it."
        )


def _batch_rows(chunks: Sequence[_ColumnChunk]) -> int:
    """The number of rows that are read at a time.

    One cell in a dictionary may be repeated in every row of a batch, so it may be a single row.
    """
    largest = max((chunk.expanded for chunk in chunks), default=0)
    return max(1, min(_ROWS, _BATCH_BYTES // max(1, largest)))

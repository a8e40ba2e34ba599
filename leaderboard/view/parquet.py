"""Tables of samples as Parquet files in the cache, and SQL over them by DuckDB.

Each task of a run has one table. Whole samples are read line by line from the run's own file, or
from an amended copy if some are scored differently here than that file states.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from medtasks.core.cache import writable_cache
from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, file_state
from medtasks.core.replacement import replaced
from medtasks.core.schema import first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.runs.sample_files import SampleFile, SampleLines, sample_lines
from medtasks.runs.samples import Sample
from medtasks.scoring.amended import samples_as_scored
from medtasks.scoring.run_cache import code_hash
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.verification_outcome import Verification

from .sample_table import table_of

_FREE_SPACE = "free space there, or set MEDTASKS_CACHE"


class SampleTable(NamedTuple):
    """A Parquet ``file`` with a row per sample, as scored here, and the ``samples`` it was made of.

    Each of ``metrics`` has a value for at least one sample; each of ``breakdowns`` divides the
    samples into at least two groups.
    """

    samples: Path
    file: str
    metrics: tuple[str, ...]
    breakdowns: tuple[str, ...]

    def line(self, start: int, size: int) -> bytes:
        """The line of the sample file that begins at byte ``start``, of ``size`` bytes."""
        with reading(self.samples, "load the page again"), self.samples.open("rb") as stream:
            stream.seek(start)
            return stream.read(size)

    def sample(self, start: int, size: int) -> Sample:
        """The sample in such a line; a `DataError` if the file changed after the table was made."""
        try:
            return model_from_json(Sample, self.line(start, size))
        except ValidationError as error:
            raise DataError(
                f"{self.samples}: {first_problem(error)}; load the page again."
            ) from error


class SampleTables:
    """Writes sample tables to the user's cache, and queries them."""

    def __init__(self) -> None:
        """Create the cache directory, private to the user, and open a database in memory."""
        self._folder = writable_cache() / "view"
        self._rules = code_hash(Path(__file__).parents[1])
        with reading(self._folder, "set MEDTASKS_CACHE to a directory that can be written"):
            # data licences may forbid sharing the texts in the tables
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = duckdb.connect(config={"autoinstall_known_extensions": False})

    def table(self, folder: Path, run: RunRecord, task: str) -> SampleTable:
        """The table of a task's samples as they are scored here, from the cache if it is current.

        Whole samples are read from the run's own file. If some are scored differently here than
        the file states, they are read from an amended copy in the cache.
        """
        path = folder / "samples" / f"{task}.jsonl"
        verification = run.verification[task]
        amended = run.amended.get(task, b"")
        key = self._cache_key(path, task, verification, amended)
        if amended:
            path = self._amended_copy(self._folder / f"{key}.jsonl", path, amended)
        parquet = self._folder / f"{key}.parquet"
        schema = _readable_schema(parquet)
        if schema is None:
            schema = _write_table(parquet, path, task, verification)
        return SampleTable(path, str(parquet), _metrics(schema), _breakdowns(schema))

    def _cache_key(self, path: Path, task: str, verification: Verification, amended: bytes) -> str:
        """A hash of all that a table depends on: code, task, sample file, outcome, amendments."""
        with reading(path, "restore it"):
            parts = [
                self._rules,
                task,
                state_of([path]),
                repr(verification),
                hashlib.sha256(amended).hexdigest(),
            ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _amended_copy(self, copy: Path, path: Path, amended: bytes) -> Path:
        """The copy of a sample file as its samples are scored here, written unless it exists."""
        if not copy.is_file():
            samples = samples_as_scored(SampleFile(path), amended)
            with reading(copy, _FREE_SPACE), replaced(copy) as partial:
                SampleLines(samples, self._folder).write(partial)
        return copy

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows that a SQL query returns; parameters that the query does not use are ignored."""
        used = {name: value for name, value in values.items() if f"${name}" in query}
        return self._database.cursor().execute(query, used).fetchall()  # a cursor for each thread


def _readable_schema(parquet: Path) -> pa.Schema | None:
    """The schema of a Parquet file; None if the file is absent or damaged."""
    try:
        return pq.read_schema(parquet)
    except (OSError, pa.ArrowException):
        return None


def _write_table(parquet: Path, path: Path, task: str, verification: Verification) -> pa.Schema:
    """Write the table of the samples in ``path`` to ``parquet``; return its schema."""
    table = table_of(sample_lines(path), task, verification)
    with reading(parquet, _FREE_SPACE), replaced(parquet) as partial:
        pq.write_table(table, partial, compression="zstd")
    return table.schema


def _metrics(schema: pa.Schema) -> tuple[str, ...]:
    """The metrics that a table has values of, from the metadata of its schema."""
    return tuple(json.loads(schema.metadata[b"metrics"]))


def _breakdowns(schema: pa.Schema) -> tuple[str, ...]:
    """The breakdowns that a table has a column for."""
    prefix = "group_"
    return tuple(name.removeprefix(prefix) for name in schema.names if name.startswith(prefix))


def state_of(paths: Iterable[Path]) -> str:
    """Paths, sizes, modification times and inodes of files, as text; `OSError` if one is gone."""
    return canonical_json([[str(path.resolve()), *file_state(path.stat())] for path in paths])


def quoted(column: str) -> str:
    """A column's name as a quoted SQL identifier."""
    escaped = column.replace('"', '""')
    return f'"{escaped}"'

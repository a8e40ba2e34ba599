"""Tables of samples as Parquet files in the cache, and SQL over them by DuckDB.

There is one for each task of a run. Whole samples are read line by line from the run's own file, or
from a copy with the samples that are scored otherwise than it claims.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
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
    """The table ``file`` of the samples in ``samples``, as they are scored here.

    ``metrics`` have a value of some sample, ``breakdowns`` different values.
    """

    samples: Path
    file: str
    metrics: tuple[str, ...]
    breakdowns: tuple[str, ...]

    def line(self, start: int, size: int) -> bytes:
        """The line of the file that begins at ``start``."""
        with reading(self.samples, "load the page again"), self.samples.open("rb") as stream:
            stream.seek(start)
            return stream.read(size)

    def sample(self, start: int, size: int) -> Sample:
        """The sample in that line; `DataError` if the file has changed since the table was made."""
        try:
            return model_from_json(Sample, self.line(start, size))
        except ValidationError as error:
            raise DataError(
                f"{self.samples}: {first_problem(error)}; load the page again."
            ) from error


class SampleTables:
    """Makes the tables, in the user's cache, and queries them."""

    def __init__(self) -> None:
        self._folder = writable_cache() / "view"
        self._rules = code_hash(Path(__file__).parents[1])
        with reading(self._folder, "set MEDTASKS_CACHE to a directory that can be written"):
            # some texts must not be shared
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = duckdb.connect(config={"autoinstall_known_extensions": False})

    def table(self, folder: Path, run: RunRecord, task: str) -> SampleTable:
        """The table of a task's samples as they are scored here.

        It is made now unless there is one of the file as it is. Its samples are in the directory's
        file, or in a copy in the cache with those that are scored otherwise than it claims.
        """
        path = folder / "samples" / f"{task}.jsonl"
        verification = run.verification[task]
        amended = run.amended.get(task, b"")
        key = self._key(path, task, verification, amended)
        kept = self._folder / f"{key}.parquet"
        if amended:
            copy = self._folder / f"{key}.jsonl"
            path = self._copied(copy, samples_as_scored(SampleFile(path), amended))
        try:
            schema = pq.read_schema(kept)
        except (OSError, pa.ArrowException):  # absent or damaged
            table = table_of(sample_lines(path), task, verification)
            schema = table.schema
            with reading(kept, _FREE_SPACE), replaced(kept) as partial:
                pq.write_table(table, partial, compression="zstd")
        metrics = json.loads(schema.metadata[b"metrics"])
        breakdowns = []
        for name in schema.names:
            if name.startswith("group_"):
                breakdowns.append(name.removeprefix("group_"))
        return SampleTable(path, str(kept), tuple(metrics), tuple(breakdowns))

    def _key(self, path: Path, task: str, verification: Verification, amended: bytes) -> str:
        """A hash of everything that a table is made of."""
        with reading(path, "restore it"):
            parts = [
                self._rules,
                task,
                state_of([path]),
                repr(verification),
                hashlib.sha256(amended).hexdigest(),
            ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _copied(self, path: Path, samples: Iterator[Sample]) -> Path:
        """The file of these samples, written unless it is there."""
        if not path.is_file():
            with reading(path, _FREE_SPACE), replaced(path) as partial:
                SampleLines(samples, self._folder).write(partial)
        return path

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows that answer a query in SQL with named parameters; unused ones are ignored."""
        used = {name: value for name, value in values.items() if f"${name}" in query}
        return self._database.cursor().execute(query, used).fetchall()  # a cursor for each thread


def state_of(paths: Iterable[Path]) -> str:
    """Paths, sizes, modification times and inodes of files, as text; `OSError` if one is gone."""
    return canonical_json([[str(path.resolve()), *file_state(path.stat())] for path in paths])


def quoted(column: str) -> str:
    """The name of a column in SQL."""
    escaped = column.replace('"', '""')
    return f'"{escaped}"'

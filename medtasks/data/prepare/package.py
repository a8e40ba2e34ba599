"""Prepares the data of another package's benchmark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.data.manifest import Source
from medtasks.data.preparation import Preparation
from medtasks.data.prepare.job import PrepareJob, Progress
from medtasks.data.prepared import Prepared
from medtasks.data.records import Record
from medtasks.errors import DataError, MedtasksError, UsageError
from medtasks.schema import shown

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Benchmark


def prepare_package(
    benchmark: Benchmark,
    source: Path,
    out: Path | None = None,
    *,
    media: Path | None = None,
    allow_missing_media: bool = False,
    references_only: bool = False,
    workers: int = 0,
    progress: Progress | None = None,
    mini: bool = False,
) -> Prepared:
    """Prepare the records that ``benchmark.read(source)`` yields, with media below ``media`` (default: ``source``).

    Raises:
        UsageError: the source does not exist, or the benchmark cannot read one.
        DataError: two records share an id, a record is of another type, or reading fails.
    """
    if benchmark.read is None:
        raise UsageError(f"{benchmark.name} cannot read data; its package must set `read` of the Benchmark.")
    if not source.exists():
        raise UsageError(f"--source {source}: there is no such file or directory; check the path.")
    records: list[Record] = []
    try:
        for record in benchmark.read(source):
            if not isinstance(record, benchmark.record):
                found = type(record).__name__
                raise DataError(f"{benchmark.name}: read() returned a {found}, expected {benchmark.record.__name__}.")
            records.append(record)
    except MedtasksError:
        raise
    except Exception as error:
        raise DataError(
            f"{source}: the reader of {benchmark.name} failed after {len(records)} records "
            f"({type(error).__name__}: {error}); check the source, or report it to the package's authors."
        ) from error
    twice = sorted(name for name, times in Counter(one.sample_id for one in records).items() if times > 1)
    if twice:
        raise DataError(
            f"{source}: {len(twice)} sample ids are duplicated, such as {shown(twice[0])}; make them unique."
        )
    origin = Source(kind="package", name=source.name)
    root = media or (source if source.is_dir() else source.parent)
    with Preparation(benchmark.name, out, references_only=references_only, mini=mini) as place:
        return PrepareJob(place, origin, root, allow_missing_media, workers, progress).finish(records)

"""Preparing the release of a benchmark whose package reads its rows (`DataSource.read`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import Unpack

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.records import Record
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.hub import hub_tree
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import PictureOptions
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Release


def prepare_package(
    benchmark: Benchmark,
    source: Path | None,
    out: Path | None = None,
    *,
    media: Path | None = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare the records that ``benchmark.data.read`` yields of the release ``source``.

    The source ``hub``, unless there is a file of that name, or None is the dataset
    `DataSource.hub`. Pictures are below ``media`` (default:
    ``source``), in ZIP archives there, or in the rows.

    Raises:
        UsageError: the benchmark cannot read data, or is not on the hub.
        DataError: the reader fails, or two records have one id.
    """
    if benchmark.data.read is None:
        raise UsageError(
            f"{benchmark.name} cannot read data; its package must set `read` of the Benchmark."
        )
    path, origin = _located_release(benchmark, source)
    if media is None and benchmark.data.local is not None:
        media = benchmark.data.local.media
    with Preparation(benchmark.name, out, **options) as place:
        keep = None if place.references_only else place.directory / "media"
        release = Release(path, media, keep)
        records = _read_records(benchmark, release, path)
        _refuse_duplicates(records, path)
        release.unpack(place.progress)
        return place.finish(origin, records, release.media_root)


def _located_release(benchmark: Benchmark, source: Path | None) -> tuple[Path, Source]:
    """The path of the release, fetched if ``source`` is the hub, and its origin."""
    local = benchmark.data.local
    if local is not None and source == local.rows:
        return source, Source(kind="folder", name=source.name, sha256=local.state())
    if source is not None and (str(source) != "hub" or source.exists()):
        return source, Source(kind="package", name=source.name)
    files = benchmark.data.hub_files
    if files is None:
        raise UsageError(f"{benchmark.name} is not on the hub; give its files with --source DIR.")
    folder, commit = hub_tree(files.dataset, *files.patterns, revision=files.revision)
    return folder, Source(kind="hub", name=files.dataset, revision=commit)


def _read_records(benchmark: Benchmark, release: Release, source: Path) -> list[Record]:
    """The records that the package's reader yields; its errors name the package."""
    assert benchmark.data.read is not None
    records: list[Record] = []
    try:
        for record in benchmark.data.read(release):
            if not isinstance(record, benchmark.data.record):
                raise DataError(
                    f"{benchmark.name}: read() returned a {type(record).__name__}, "
                    f"expected {benchmark.data.record.__name__}."
                )
            records.append(record)
    except MedtasksError:
        raise
    except Exception as error:  # the reader is the package's code
        raise DataError(
            f"{source}: the reader of {benchmark.name} failed after {len(records)} records "
            f"({type(error).__name__}: {error}); check the source, "
            "or report it to the package's authors."
        ) from error
    return records


def _refuse_duplicates(records: Sequence[Record], source: Path) -> None:
    """Refuse records with the same id, naming the rows of one such id."""
    names = [record.sample_id for record in records]
    duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
    if not duplicates:
        return
    example = duplicates[0]
    rows = [str(row) for row, name in enumerate(names, start=1) if name == example]
    raise DataError(
        f"{source}: {len(duplicates)} sample ids are duplicated, such as {shown(example)} "
        f"(rows {first_names(rows)}); make them unique."
    )

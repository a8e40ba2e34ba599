"""Data preparation shared by all benchmarks: verify media, exclude or refuse rows, write."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from medtasks.data.manifest import Source
from medtasks.data.preparation import Preparation
from medtasks.data.prepared import Prepared
from medtasks.data.records import Record
from medtasks.errors import DataError, MediaError, MedtasksError, UsageError
from medtasks.schema import shown

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Benchmark

Progress = Callable[[int, int], None]
"""Called with (files verified, files in all)."""

NAMED = 10

R = TypeVar("R", bound=Record)


def distinct(records: Iterable[R]) -> list[R]:
    """Records with unique ids: duplicates get ``#2``, ``#3``."""
    times: Counter[str] = Counter()
    found = []
    for record in records:
        times[record.sample_id] += 1
        number = times[record.sample_id]
        again = {"sample_id": f"{record.sample_id}#{number}"}
        found.append(record.model_copy(update=again) if number > 1 else record)
    return found


def repeated(records: Sequence[Record]) -> dict[str, int]:
    """How many records repeat an earlier one except for the number of `distinct`, as an oddity; empty if none does."""
    several = {record.sample_id.partition("#")[0] for record in records if "#" in record.sample_id}
    contents = Counter(
        record.model_dump_json(exclude={"sample_id"})
        for record in records
        if record.sample_id.partition("#")[0] in several
    )
    number = contents.total() - len(contents)
    return {"records that only repeat an earlier one": number} if number else {}


@dataclass
class PrepareJob:
    """Turns records and the directory of their pictures into prepared data."""

    place: Preparation
    source: Source
    root: Path
    allow_missing_media: bool
    workers: int
    progress: Progress | None
    excluded: Counter[str] = field(default_factory=Counter)
    excluded_samples: list[str] = field(default_factory=list)
    details: dict[str, dict[str, int]] = field(default_factory=dict)
    unavailable: dict[str, MediaError] = field(default_factory=dict)
    """Why media could not be fetched."""

    def finish(self, records: Sequence[Record]) -> Prepared:
        """Verify the media of ``records`` (unless references only), and write the rows that are left.

        Raises:
            DataError: there is no record, or none is left.
            MediaError: pictures are missing or damaged; the first ten are named. With ``allow_missing_media`` their
                rows are excluded instead, and counted in the manifest.
        """
        if not records:
            raise DataError(f"{self.source.name}: has no row, expected at least one; fetch it again.")
        root = self._media_root()
        files = self.place.directory / root
        names = {name for record in records for name in record.media}
        if self.place.references_only:
            names.clear()
        entries, errors = self.place.index(files, names - self.unavailable.keys(), self.workers, self.progress)
        errors |= {name: error for name, error in self.unavailable.items() if name in names}
        if errors and not self.allow_missing_media:
            raise _refusal(list(errors.values()))
        kept = [record for record in records if self._keep(record, files, errors)]
        if not kept:
            raise DataError(f"{self.source.name}: no row is left, because none has a picture; check --images.")
        used = {name for record in kept for name in record.media}
        if twice := repeated(records):
            self.details = {**self.details, "oddities": {**self.details.get("oddities", {}), **twice}}
        return self.place.complete(
            source=self.source,
            root=root,
            records=kept,
            media=[entry for entry in entries if entry.path in used],
            excluded=self.excluded,
            excluded_samples=self.excluded_samples,
            details=self.details,
            everything=records,
        )

    def _media_root(self) -> Path:
        """The media root for the manifest: relative for miniature data, whose pictures move with it."""
        if self.root == Path("media"):
            return self.root
        if self.place.mini:
            return Path(os.path.relpath(self.root, self.place.directory))
        return self.root.resolve()

    def _keep(self, record: Record, files: Path, errors: dict[str, MediaError]) -> bool:
        bad = [name for name in record.media if name in errors]
        if not bad:
            return True
        all_exist = all((files / name).is_file() for name in bad)
        self.excluded["unreadable_image" if all_exist else "missing_image"] += 1
        self.excluded_samples.append(record.sample_id)
        return False


def _refusal(errors: Sequence[MediaError]) -> MediaError:
    named = " ".join(str(error) for error in errors[:NAMED])
    rest = f" And {len(errors) - NAMED} more." if len(errors) > NAMED else ""
    return MediaError(
        f"{len(errors)} of the pictures cannot be used: {named}{rest} Or leave out and count their rows "
        "with --allow-missing-media."
    )


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

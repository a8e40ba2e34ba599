"""Prepared data on disk: the records, media index and manifest of one directory."""

from __future__ import annotations

import functools
import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.records import Record
from medtasks.catalog.registry import get_benchmark
from medtasks.core.cache import cache_root
from medtasks.core.errors import DamagedDataError
from medtasks.core.files import file_sha256
from medtasks.core.schema import Frozen
from medtasks.core.settings import current_settings
from medtasks.data.media.images import MediaEntry, VideoFacts

T = TypeVar("T", bound=BaseModel)


class Source(Frozen):
    """Where the rows came from.

    It has no local paths, so that equal sources give equal manifests.
    """

    kind: str
    name: str
    revision: str | None = None
    sha256: str | None = None  # of an archive, or of the rows of a benchmark folder
    images: str | None = None  # if the pictures have another source: name@revision


class Counts(Frozen):
    """Numbers of rows (also by kind), clusters and media files."""

    rows: int
    clusters: int
    media: int
    by_kind: dict[str, int]


class TaskCoverage(Frozen):
    """How many of a source's records of one task are prepared.

    The others lack media, or end before their window.
    """

    source: str
    task: str
    prepared: int
    records: int


class DataManifest(Frozen):
    """``manifest.json``. Only ``created`` and ``media_root`` differ between repetitions."""

    benchmark: str
    medtasks: str
    created: str
    media_root: str
    source: Source
    counts: Counts
    published: dict[str, int]
    differences: tuple[str, ...]
    excluded: dict[str, int]
    excluded_samples: tuple[str, ...]
    # by the file's path below the media root: why it cannot be used, and the fix
    excluded_media: dict[str, str] = Field(default_factory=dict)
    uniform_media: tuple[str, ...] = ()  # pictures whose pixels are all equal
    details: dict[str, dict[str, int]] = Field(default_factory=dict)
    coverage: tuple[TaskCoverage, ...] = ()
    references_only: bool = False
    mini: bool
    fingerprint: str


def counted(benchmark: Benchmark, counts: Counts) -> dict[str, int]:
    """The numbers of prepared rows under the names of the published counts.

    ``rows`` are those that are not `RecordCounts.apart`.
    """
    if benchmark.counts.apart is None:
        return {"rows": counts.rows, **counts.by_kind}
    apart = 0
    for kind, number in counts.by_kind.items():
        if kind.startswith(benchmark.counts.apart):
            apart += number
    return {"rows": counts.rows - apart, benchmark.counts.apart: apart, **counts.by_kind}


def coverage_lines(coverage: Sequence[TaskCoverage]) -> list[str]:
    """One line per source with the share of its records that are prepared, even if none is."""
    prepared: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for entry in coverage:
        prepared[entry.source] += entry.prepared
        records[entry.source] += entry.records
    lines: list[str] = []
    for name in sorted(records, key=str.casefold):
        share = prepared[name] / records[name]
        lines.append(
            f"coverage {name}: {prepared[name]:,} of {records[name]:,} records ({share:.0%})"
        )
    return lines


def fingerprint(directory: Path) -> str:
    """SHA-256 over the records and the media index in ``directory``.

    Equal fingerprints mean the same questions and pixels.
    """
    digest = hashlib.sha256()
    for name in ("records.jsonl", "media.jsonl"):
        digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()


def is_mini(benchmark: str = "") -> bool:
    """Whether miniature data are requested: by ``MEDTASKS_DATA=mini``, or for this benchmark."""
    settings = current_settings()
    return settings.mini or benchmark in settings.miniature


def data_root() -> Path:
    """Directory of prepared data: ``$MEDTASKS_DATA``, or ``data`` in the user's cache directory."""
    return current_settings().data or cache_root() / "data"


@dataclass(frozen=True)
class Prepared:
    """An opened prepared dataset; records and media index are read on first use."""

    directory: Path
    manifest: DataManifest

    def records(self) -> tuple[Record, ...]:
        """All records, in the order of the source.

        Raises:
            DamagedDataError: the files have changed since they were prepared.
        """
        return self._records

    def forget_records(self) -> None:
        """Release the records; they are read again when they are needed."""
        self.__dict__.pop("_records", None)

    @functools.cached_property
    def _records(self) -> tuple[Record, ...]:
        """The records, kept until :meth:`forget_records`."""
        self.require_intact()
        record_type = get_benchmark(self.manifest.benchmark).data.record
        return _read_lines(self.directory / "records.jsonl", record_type)

    def require_intact(self) -> None:
        """Raise :class:`DamagedDataError` if records or media index have changed."""
        expected = self.manifest.fingerprint
        try:
            actual = fingerprint(self.directory)
        except OSError:
            actual = "missing"
        if actual != expected:
            raise DamagedDataError(
                f"{self.directory}: records or media index have changed since they were prepared "
                f"(fingerprint {actual[:16]}, expected {expected[:16]}); "
                "prepare the benchmark again."
            )

    @functools.cached_property
    def media(self) -> tuple[MediaEntry, ...]:
        """The media index: an entry for each media file."""
        return _read_lines(self.directory / "media.jsonl", MediaEntry)

    @functools.cached_property
    def videos(self) -> dict[str, VideoFacts]:
        """The facts that are needed to read frames of each video, by its name."""
        return {entry.path: entry.video for entry in self.media if entry.video is not None}

    @functools.cached_property
    def item_frames(self) -> dict[str, tuple[int, ...]]:
        """Timestamps of all video frames that the rounds of an item show."""
        frames: dict[str, set[int]] = defaultdict(set)
        documents_of = get_benchmark(self.manifest.benchmark).data.documents
        for record in self._records:
            for document in documents_of(record):
                if document.get("frames"):
                    frames[document["item_id"]].update(document["frames"])
        return {item: tuple(sorted(timestamps)) for item, timestamps in frames.items()}

    def media_path(self, name: str) -> Path:
        """The path of the media file ``name``."""
        return Path(os.path.normpath(self.directory / self.manifest.media_root / name))

    def missing_media(self) -> list[str]:
        """Names of media files that are missing or changed size since verification, sorted."""
        return [entry.path for entry in self.media if not self._has_size(entry)]

    def changed_media(self, names: Collection[str] | None = None) -> list[str]:
        """As :meth:`missing_media`, among ``names`` or all, but by the files' content."""
        entries = [entry for entry in self.media if names is None or entry.path in names]
        changed: list[str] = []
        with ThreadPoolExecutor() as pool:
            comparisons = pool.map(self._has_content, entries)
            for entry, is_unchanged in zip(entries, comparisons, strict=True):
                if not is_unchanged:
                    changed.append(entry.path)
        return changed

    def is_whole(self) -> bool:
        """Whether records, media index and all media files are unchanged since preparation."""
        try:
            self.require_intact()
            return all(self._has_content(entry) for entry in self.media)
        except DamagedDataError:
            return False

    def _has_size(self, entry: MediaEntry) -> bool:
        """Whether the file of ``entry`` exists with the size that it had."""
        try:
            return self.media_path(entry.path).stat().st_size == entry.bytes
        except OSError:
            return False

    def _has_content(self, entry: MediaEntry) -> bool:
        """Whether the file of ``entry`` has the SHA-256 that it had."""
        try:
            return file_sha256(self.media_path(entry.path)) == entry.sha256
        except OSError:
            return False


def open_directory(directory: Path) -> Prepared:
    """The prepared dataset in ``directory``.

    Raises:
        DamagedDataError: its manifest cannot be read.
    """
    path = directory / "manifest.json"
    try:
        return _opened_once(directory, path.stat().st_mtime_ns)
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise DamagedDataError(
            f"{path}: not a manifest of prepared data; prepare the benchmark again."
        ) from error


@functools.lru_cache(maxsize=8)  # every document opens its dataset
def _opened_once(directory: Path, manifest_mtime_ns: int) -> Prepared:
    """The prepared dataset in ``directory``, opened once per manifest."""
    del manifest_mtime_ns  # part of the key, so data that were prepared again are read again
    text = (directory / "manifest.json").read_text(encoding="utf-8")
    return Prepared(directory, DataManifest.model_validate_json(text))


def _read_lines(path: Path, kind: type[T]) -> tuple[T, ...]:
    """The objects of a JSONL file, each validated as a ``kind``."""
    records: list[T] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                records.append(kind.model_validate_json(line))
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        place = f"{path}, after line {len(records)}"
        raise DamagedDataError(f"{place}: cannot be read; prepare the benchmark again.") from error
    return tuple(records)

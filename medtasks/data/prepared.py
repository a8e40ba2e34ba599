"""Prepared data on disk: records, media index and manifest of one directory."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from medtasks.catalog.records import Record
from medtasks.catalog.registry import get_benchmark
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError
from medtasks.core.files import file_sha256
from medtasks.core.settings import current_settings
from medtasks.data.manifest import DataManifest, fingerprint
from medtasks.data.media.images import MediaEntry, VideoFacts

T = TypeVar("T", bound=BaseModel)


def is_mini(benchmark: str = "") -> bool:
    """Whether miniature data are requested: by ``MEDTASKS_DATA=mini``, or for this benchmark."""
    settings = current_settings()
    return settings.mini or benchmark in settings.miniature


def data_root() -> Path:
    """Directory of prepared data: ``$MEDTASKS_DATA``, by default ``data`` in the user's cache directory."""
    return current_settings().data or cache_root() / "data"


@dataclass(frozen=True)
class Prepared:
    """An opened prepared dataset; records and media index are read on first use."""

    directory: Path
    manifest: DataManifest

    def records(self) -> tuple[Record, ...]:
        """All records, in the order of the source.

        Raises:
            DataError: the files were changed by hand since they were prepared.
        """
        return self._records

    def forget_records(self) -> None:
        """Release the records; they are read again when they are needed."""
        self.__dict__.pop("_records", None)

    def media(self) -> tuple[MediaEntry, ...]:
        """The media index, sorted by path."""
        return self._media

    def video(self, name: str) -> VideoFacts:
        """What is needed to read frames of the video ``name``; raises :class:`DataError` if there is none."""
        facts = self._videos.get(name)
        if facts is None:
            path = self.directory / "media.jsonl"
            raise DataError(f"{path}: has no video {name}; prepare the benchmark again.")
        return facts

    def item_frames(self, item_id: str) -> tuple[int, ...]:
        """Timestamps of all video frames that the rounds of an item show, increasing."""
        return self._item_frames.get(item_id, ())

    @functools.cached_property
    def _records(self) -> tuple[Record, ...]:
        """Records, after checking the fingerprint, which is written to results."""
        expected = self.manifest.fingerprint
        try:
            found = fingerprint(self.directory)
        except OSError as error:
            raise DataError(
                f"{self.directory}: records or media index cannot be read; prepare the benchmark again."
            ) from error
        if found != expected:
            raise DataError(
                f"{self.directory}: records or media index have changed since they were prepared (fingerprint "
                f"{found[:16]}, expected {expected[:16]}); prepare the benchmark again."
            )
        return _read_lines(self.directory / "records.jsonl", get_benchmark(self.manifest.benchmark).record)

    @functools.cached_property
    def _media(self) -> tuple[MediaEntry, ...]:
        return _read_lines(self.directory / "media.jsonl", MediaEntry)

    @functools.cached_property
    def _videos(self) -> dict[str, VideoFacts]:
        return {entry.path: entry.video for entry in self._media if entry.video is not None}

    @functools.cached_property
    def _item_frames(self) -> dict[str, tuple[int, ...]]:
        frames: dict[str, set[int]] = {}
        documents_of = get_benchmark(self.manifest.benchmark).documents
        for record in self._records:
            for document in documents_of(record):
                if document.get("frames"):
                    frames.setdefault(document["item_id"], set()).update(document["frames"])
        return {item: tuple(sorted(shown)) for item, shown in frames.items()}

    def media_path(self, name: str) -> Path:
        """Path of the media file ``name``."""
        return Path(os.path.normpath(self.directory / self.manifest.media_root / name))

    def missing_media(self) -> list[str]:
        """Names of media files that are missing or changed size since verification, sorted."""
        return [entry.path for entry in self.media() if _read(self.media_path(entry.path), _size) != entry.bytes]

    def changed_media(self, names: Collection[str] | None = None) -> list[str]:
        """Media files, among ``names`` or all, that are missing or whose content changed since verification, sorted.

        Reads the files, unlike :meth:`missing_media`, which does not notice another file of the same size.
        """
        entries = [entry for entry in self.media() if names is None or entry.path in names]
        with ThreadPoolExecutor() as pool:
            found = pool.map(lambda entry: _read(self.media_path(entry.path), file_sha256), entries)
            return [entry.path for entry, digest in zip(entries, found, strict=True) if digest != entry.sha256]


def _read(path: Path, read: Callable[[Path], object]) -> object:
    try:
        return read(path)
    except OSError:
        return None


def open_directory(directory: Path) -> Prepared:
    """The prepared dataset in ``directory``; raises :class:`DataError` if its manifest cannot be read."""
    path = directory / "manifest.json"
    try:
        return _open(directory, path.stat().st_mtime_ns)
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a manifest of prepared data; prepare the benchmark again.") from error


# Every document opens its dataset. The manifest's mtime is part of the key, so re-prepared data are read again.
@functools.lru_cache(maxsize=8)
def _open(directory: Path, manifest_mtime_ns: int) -> Prepared:
    del manifest_mtime_ns
    text = (directory / "manifest.json").read_text(encoding="utf-8")
    return Prepared(directory, DataManifest.model_validate_json(text))


def _read_lines(path: Path, kind: type[T]) -> tuple[T, ...]:
    items = []
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                items.append(kind.model_validate_json(line))
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise DataError(f"{path}, after line {len(items)}: cannot be read; prepare the benchmark again.") from error
    return tuple(items)


def _size(path: Path) -> int:
    return path.stat().st_size

"""Where prepared data live, and how they are opened."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from medtasks.data.manifest import DataManifest
from medtasks.data.media import MediaEntry
from medtasks.data.records import KvasirRecord, MiCxrRecord, Record
from medtasks.errors import DataError, NotPreparedError

__all__ = [
    "RECORD_TYPES",
    "Prepared",
    "cache_root",
    "data_root",
    "is_mini",
    "open_directory",
    "open_prepared",
]

RECORD_TYPES: dict[str, type[Record]] = {"kvasir_vqa_x1": KvasirRecord, "mi_cxr": MiCxrRecord}


def cache_root() -> Path:
    """Folder for what can be made again: ``$MEDTASKS_CACHE``, else the user's cache folder."""
    from platformdirs import user_cache_path

    named = os.environ.get("MEDTASKS_CACHE")
    return Path(named).expanduser() if named else user_cache_path("medtasks")


def is_mini() -> bool:
    """Whether the miniature data were asked for by name (``MEDTASKS_DATA=mini``)."""
    return os.environ.get("MEDTASKS_DATA") == "mini"


def data_root() -> Path:
    """Folder of prepared data: ``$MEDTASKS_DATA``, else ``data`` in the user's cache folder."""
    named = os.environ.get("MEDTASKS_DATA")
    return Path(named).expanduser() if named and named != "mini" else cache_root() / "data"


@dataclass(frozen=True)
class Prepared:
    """A prepared dataset, opened; records and media index are read when first asked for."""

    directory: Path
    manifest: DataManifest

    def records(self) -> tuple[Record, ...]:
        """All records, in the order of the source.

        Raises:
            DataError: the file was changed by hand and no longer holds records.
        """
        return _records(self.directory, self.manifest.benchmark, self.manifest.fingerprint)

    def media(self) -> tuple[MediaEntry, ...]:
        """The media index, sorted by path."""
        return _media(self.directory, self.manifest.fingerprint)

    def media_path(self, name: str) -> Path:
        """The file of the medium ``name``."""
        return Path(os.path.normpath(self.directory / self.manifest.media_root / name))

    def missing_media(self) -> list[str]:
        """Names of media whose file is gone, or has another size than when it was verified, sorted."""
        return [entry.path for entry in self.media() if _size(self.media_path(entry.path)) != entry.bytes]


def open_prepared(benchmark: str) -> Prepared:
    """The prepared data of ``benchmark``; with ``MEDTASKS_DATA=mini`` its miniature, made now where absent.

    Raises:
        NotPreparedError: there are none; the message holds the command that prepares them.
    """
    if is_mini():
        from medtasks.data.mini import prepare_mini

        return open_directory(prepare_mini(benchmark))
    directory = data_root() / benchmark
    if not (directory / "manifest.json").is_file():
        from medtasks.benchmarks import get_benchmark

        raise NotPreparedError(
            f"{benchmark} is not prepared in {data_root()}; run: {get_benchmark(benchmark).prepare} "
            "(or set MEDTASKS_DATA=mini to try the miniature data)"
        )
    return open_directory(directory)


def open_directory(directory: Path) -> Prepared:
    """The prepared dataset in ``directory``.

    Raises:
        DataError: its manifest cannot be read.
    """
    path = directory / "manifest.json"
    try:
        manifest = DataManifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a manifest of prepared data; prepare the benchmark again.") from error
    return Prepared(directory, manifest)


# The fingerprint is part of the key, so data that are prepared again are read again.
@functools.lru_cache(maxsize=8)
def _records(directory: Path, benchmark: str, fingerprint: str) -> tuple[Record, ...]:
    del fingerprint
    kind = RECORD_TYPES[benchmark]
    path = directory / "records.jsonl"
    records = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                records.append(kind.model_validate_json(line))
            except ValidationError as error:
                raise DataError(
                    f"{path}, line {number}: not a record of {benchmark}; prepare the benchmark again."
                ) from error
    return tuple(records)


@functools.lru_cache(maxsize=8)
def _media(directory: Path, fingerprint: str) -> tuple[MediaEntry, ...]:
    del fingerprint
    with (directory / "media.jsonl").open(encoding="utf-8") as lines:
        return tuple(MediaEntry.model_validate_json(line) for line in lines)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None

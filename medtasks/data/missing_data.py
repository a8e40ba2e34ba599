"""Which benchmarks of a run are not prepared, and what it takes to prepare them automatically."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.catalog.benchmark import AutomaticPreparation, Benchmark, HubFiles
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import NotPreparedError
from medtasks.core.text import byte_count, first_names
from medtasks.data.hub_listing import (
    HubListing,
    ListedFile,
    hub_listing,
    stated_size,
)
from medtasks.data.large_files import arrived_bytes
from medtasks.data.preparation import partial_directory
from medtasks.data.prepared import data_root
from medtasks.data.store import open_prepared


@dataclass(frozen=True)
class MissingData:
    """A benchmark that is not prepared, but can be prepared automatically.

    ``sentence`` states that the data are missing, and how the user can prepare them.
    """

    benchmark: Benchmark
    preparation: AutomaticPreparation
    sentence: str

    @property
    def name(self) -> str:
        return self.benchmark.name


@dataclass(frozen=True)
class PlannedDownload:
    """Missing data, and the hub files that they are made from."""

    missing: MissingData
    listings: tuple[HubListing, ...]

    @property
    def bytes(self) -> int:
        """The size of all files; the prepared data are about as large."""
        return sum(listing.bytes for listing in self.listings)

    def __str__(self) -> str:
        """The download in one line: benchmark, size, licence, datasets and their commits."""
        name = f"{self.missing.name} ({self.missing.benchmark.title})"
        preparation = self.missing.preparation
        if preparation.original and not self.listings:
            return f"{name}: made from {preparation.original}, without a download"
        files = [file for listing in self.listings for file in listing.files]
        size = stated_size(files, is_limit=preparation.is_limit)
        licence = self.missing.benchmark.publication.licence
        return f"{name}: {size}, licence {licence}, from {' and '.join(self._datasets())}"

    def _datasets(self) -> Iterator[str]:
        """Yield each dataset with its commit."""
        for files, listing in zip(self.missing.preparation.files, self.listings, strict=True):
            if not listing.commit:
                yield f"{listing.dataset} (a local directory)"
                continue
            which = "commit" if files.revision else "newest commit,"
            yield f"{listing.dataset} ({which} {listing.commit[:12]})"


def missing_data(names: Iterable[str]) -> list[MissingData]:
    """The benchmarks among ``names`` that are not prepared.

    A missing benchmark that another one is made from precedes it, even if ``names`` lacks it.

    Raises:
        NotPreparedError: one of them cannot be prepared automatically.
        DamagedDataError: prepared data cannot be read.
    """
    missing: dict[str, MissingData] = {}
    for name in names:
        for entry in _missing_with_original(name):
            missing.setdefault(entry.name, entry)
    return list(missing.values())


def _missing_with_original(name: str) -> list[MissingData]:
    """The benchmark ``name`` unless it is prepared, preceded by the one that it is made from."""
    try:
        open_prepared(name)
    except NotPreparedError as error:
        benchmark = get_benchmark(name)
        preparation = automatic_preparation(benchmark)
        if preparation is None:
            raise
        before: list[MissingData] = []
        if preparation.original is not None:
            before = _missing_with_original(preparation.original)
        return [*before, MissingData(benchmark, preparation, str(error))]
    return []


def automatic_preparation(benchmark: Benchmark) -> AutomaticPreparation | None:
    """How a run prepares the benchmark's data; None if a user has to do it."""
    data = benchmark.data
    if data.command is not None:
        return data.automatic
    if data.read is None or data.hub_files is None:
        return None
    return AutomaticPreparation(files=(data.hub_files,))


def planned_downloads(missing: Sequence[MissingData]) -> list[PlannedDownload]:
    """The downloads of missing data, with their files as the hub lists them now.

    Raises:
        DataError: the hub cannot be reached, or does not have a dataset.
    """
    listings: dict[HubFiles, HubListing] = {}
    planned: list[PlannedDownload] = []
    for entry in missing:
        for files in entry.preparation.files:
            if files not in listings:
                listings[files] = hub_listing(files)
        of_benchmark = tuple(listings[files] for files in entry.preparation.files)
        planned.append(PlannedDownload(entry, of_benchmark))
    return planned


def files_to_fetch(planned: Iterable[PlannedDownload]) -> list[ListedFile]:
    """The files that are not in the hub's cache on this machine."""
    return [file for listing in _listings(planned) for file in listing.files_to_fetch]


def _listings(planned: Iterable[PlannedDownload]) -> Iterable[HubListing]:
    """The listings of the downloads, each once: benchmarks may share a dataset."""
    listings: dict[HubListing, None] = {}  # an ordered set
    for download in planned:
        listings.update(dict.fromkeys(download.listings))
    return listings


def require_space(planned: Sequence[PlannedDownload]) -> None:
    """Check that there is disk space for the downloads and for the prepared data.

    What an interrupted download or preparation has left is not needed again.

    Raises:
        NotPreparedError: a disk has too little free space.
    """
    from huggingface_hub import constants

    needed_by_disk: dict[int, int] = {}
    place_of_disk: dict[int, Path] = {}
    to_fetch = _bytes_still_to_fetch(planned)
    prepared = _bytes_still_to_prepare(planned)
    for folder, needed in ((Path(constants.HF_HUB_CACHE), to_fetch), (data_root(), prepared)):
        place = _existing(folder)
        disk = place.stat().st_dev
        needed_by_disk[disk] = needed_by_disk.get(disk, 0) + needed
        place_of_disk.setdefault(disk, place)
    for disk, needed in needed_by_disk.items():
        place = place_of_disk[disk]
        free = shutil.disk_usage(place).free
        if free < needed:
            names = first_names(download.missing.name for download in planned)
            raise NotPreparedError(
                f"{place}: has {byte_count(free)} of free space, but downloading and preparing "
                f"{names} takes up to {byte_count(needed)}; free some, or choose directories on "
                "another disk with HF_HOME (downloads) and MEDTASKS_DATA (prepared data)."
            )


def _bytes_still_to_fetch(planned: Iterable[PlannedDownload]) -> int:
    """The size of the downloads, less what interrupted ones have left."""
    total = 0
    for listing in _listings(planned):
        for file in listing.files_to_fetch:
            total += max(0, (file.bytes or 0) - arrived_bytes(listing, file))
    return total


def _bytes_still_to_prepare(planned: Iterable[PlannedDownload]) -> int:
    """The size of the prepared data, less what interrupted preparations have left."""
    total = 0
    for download in planned:
        data = (data_root() / download.missing.name).resolve()
        total += max(0, download.bytes - _directory_bytes(partial_directory(data)))
    return total


def _directory_bytes(directory: Path) -> int:
    """The size of all files in a directory, which another process may be changing; 0 without it."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(folder, name).stat().st_size
    return total


def _existing(folder: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    place = folder.absolute()
    while not os.path.exists(place):  # noqa: PTH110 (False, not an error, if access is denied)
        place = place.parent
    return place

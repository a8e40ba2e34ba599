"""Which benchmarks of a run are not prepared, and what it takes to prepare them automatically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.catalog.benchmark import AutomaticPreparation, Benchmark, HubFiles
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import NotPreparedError
from medtasks.core.text import byte_count, first_names
from medtasks.data.hub_listing import HubListing, hub_listing
from medtasks.data.prepared import data_root
from medtasks.data.store import open_prepared


@dataclass(frozen=True)
class MissingData:
    """A benchmark without prepared data that can be prepared automatically.

    ``sentence`` says that the data are missing, and how the user prepares them.
    """

    benchmark: Benchmark
    preparation: AutomaticPreparation
    sentence: str

    @property
    def name(self) -> str:
        return self.benchmark.name


@dataclass(frozen=True)
class PlannedDownload:
    """Missing data with the files of the hub that they are made of."""

    missing: MissingData
    listings: tuple[HubListing, ...]

    @property
    def bytes(self) -> int:
        """The size of all files; the prepared data are about as large."""
        return sum(listing.bytes for listing in self.listings)

    def __str__(self) -> str:
        """The download in one line: benchmark, size, licence, datasets and their commits."""
        title = self.missing.benchmark.title
        if self.missing.preparation.original and not self.listings:
            original = self.missing.preparation.original
            return f"{self.missing.name} ({title}): made from {original}, without a download"
        limit = "up to " if self.missing.preparation.is_limit else ""
        datasets = []
        for files, listing in zip(self.missing.preparation.files, self.listings, strict=True):
            which = "commit" if files.revision else "newest commit,"
            datasets.append(f"{listing.dataset} ({which} {listing.commit[:12]})")
        return (
            f"{self.missing.name} ({title}): {limit}{byte_count(self.bytes)}, "
            f"licence {self.missing.benchmark.publication.licence}, from {' and '.join(datasets)}"
        )


def missing_data(names: Iterable[str]) -> list[MissingData]:
    """The benchmarks among ``names`` that are not prepared, after those that they are made from.

    Raises:
        NotPreparedError: one of them cannot be prepared without the user.
        DamagedDataError: prepared data cannot be read.
    """
    missing: dict[str, MissingData] = {}
    for name in names:
        for entry in _missing_with_original(name):
            missing.setdefault(entry.name, entry)
    return list(missing.values())


def _missing_with_original(name: str) -> list[MissingData]:
    """The benchmark ``name`` if it is not prepared, after the one that it is made from."""
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
    """The files that the missing data are made of, as the hub lists them now.

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


def bytes_to_fetch(planned: Iterable[PlannedDownload]) -> int:
    """The size of the files that are not in the hub's cache on this machine."""
    listings: dict[HubListing, None] = {}  # an ordered set: benchmarks may share a dataset
    for download in planned:
        listings.update(dict.fromkeys(download.listings))
    return sum(listing.bytes_to_fetch for listing in listings)


def require_space(planned: Sequence[PlannedDownload]) -> None:
    """Check that the hub's cache and the data directory have space for downloads and results.

    Raises:
        NotPreparedError: they have less.
    """
    from huggingface_hub import constants

    needed_by_disk: dict[int, int] = {}
    place_of_disk: dict[int, Path] = {}
    to_fetch = bytes_to_fetch(planned)
    prepared = sum(download.bytes for download in planned)
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


def _existing(folder: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    absolute = folder.absolute()
    return next(path for path in (absolute, *absolute.parents) if os.path.exists(path))  # noqa: PTH110

"""Rules for benchmark folders: ``benchmark.yaml`` is valid, and every row of the data is usable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from medtasks.catalog.benchmark_folder import (
    BenchmarkFolder,
    is_benchmark_folder,
    read_benchmark_folder,
)
from medtasks.catalog.contents import forget_packages, owner_of, task_packages
from medtasks.catalog.folders_in_use import include
from medtasks.core.errors import DataError
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.core.schema import Keys, field_name
from medtasks.data.folder_rows import read_folder, undecodable_pictures
from medtasks.data.progress import Progress
from medtasks.data.release import Release
from medtasks.data.row_faults import RowFault

MOST = 10
"""Faulty rows of one kind that are findings of their own."""


def check_folder(
    path: Path, *, decode: bool = True, progress: Progress | None = None
) -> tuple[str, list[Finding]]:
    """The name of the benchmark in the folder ``path``, and the defects of its files and rows.

    The name is empty if ``benchmark.yaml`` is not valid. With ``decode``, every picture is decoded.

    Raises:
        UsageError: it is not a benchmark folder.
    """
    folder, defects = read_benchmark_folder(path)
    if folder is None:
        return "", defects
    try:
        reading = read_folder(folder, Release(folder.data, folder.images))
    except DataError as error:
        return folder.name, [finding("MT401", folder.name, str(error), folder.place("data"))]
    faults = reading.faults
    if decode and not faults:
        faults = list(undecodable_pictures(folder, reading, progress))
    return folder.name, list(_fault_findings(folder, faults))


def _fault_findings(folder: BenchmarkFolder, faults: Sequence[RowFault]) -> Iterator[Finding]:
    """A finding for each of the first faults of a kind, and one for all further ones."""
    counts: Counter[tuple[str, Keys]] = Counter()
    for fault in faults:
        kind = fault.code, fault.keys
        counts[kind] += 1
        if counts[kind] <= MOST:
            yield _fault_finding(folder, fault)
    for (code, keys), count in counts.items():
        if count > MOST:
            message = f"{count:,} rows have this fault, of which {MOST} are listed"
            place, field = folder.place(*keys), field_name(keys)
            yield finding(code, folder.name, message, place, field, fix="fix all of them")


def _fault_finding(folder: BenchmarkFolder, fault: RowFault) -> Finding:
    """The finding about a row, or about a key of ``benchmark.yaml``."""
    place = folder.place(*fault.keys)
    if fault.where is not None:
        place = Place(folder.data, fault.where.line)
    field = field_name(fault.keys)
    return finding(
        fault.code, folder.name, fault.message, place, field, fix=fault.fix, severity="error"
    )


def in_folder(finding: Finding) -> Finding:
    """The finding, in ``benchmark.yaml`` if it is about a task file that follows from it."""
    if not finding.file:
        return finding
    folder = owner_of(Path(finding.file)).folder
    if folder is None:
        return finding
    place = folder.place(finding.field)
    return replace(finding, file=str(place.file), line=place.line)


def folder_findings(
    what: Sequence[str], *, decode: bool = True, progress: Progress | None = None
) -> tuple[list[str], dict[str, list[Finding]]]:
    """The names to check further, and the findings about folders among ``what``, by benchmark.

    A folder is named by its path or by its benchmark. One without errors is used in this process,
    and its benchmark takes its place among the names.
    """
    in_use = {
        package.folder.name: package.folder.path
        for package in (task_packages() if what else ())
        if package.folder is not None
    }
    names: list[str] = []
    findings: dict[str, list[Finding]] = {}
    for name in what:
        path = Path(name)
        if not is_benchmark_folder(path):
            if name not in in_use:
                names.append(name)
                continue
            path = in_use[name]
        benchmark, about_folder = check_folder(path, decode=decode, progress=progress)
        if failed(about_folder):
            findings[benchmark or path.name] = about_folder
            continue
        if benchmark not in in_use or in_use[benchmark] != path.resolve():
            include(path)
            forget_packages()
        names.append(benchmark)
    return names, findings

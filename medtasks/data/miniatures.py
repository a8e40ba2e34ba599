"""Miniature data: drawn pictures and rows in a release's layout, prepared on first use."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
from functools import partial
from pathlib import Path

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import once
from medtasks.catalog.guest_code import raised_in
from medtasks.catalog.registry import all_benchmarks, benchmark_owner, get_benchmark
from medtasks.core.cache import writable_cache
from medtasks.core.errors import DamagedDataError, MedtasksError, UsageError, first_line
from medtasks.core.replacement import replace_directory, temporary_beside
from medtasks.data.package_release import prepare_package
from medtasks.data.prepared import open_directory

MINI_VERSION = "7"
"""Bumped when the shared preparation code changes."""


def prepare_mini(benchmark: str) -> Path:
    """Directory of the prepared miniature data of ``benchmark``, made on first use.

    Damaged data are made again. Safe for several processes: each works in its own directory, and
    the first to finish wins.

    Raises:
        UsageError: the benchmark has no miniature data.
        DamagedDataError: they cannot be written.
        MedtasksError: the benchmark's package cannot make them.
    """
    # the hash separates data made by different versions of the package
    version = _code_hash(benchmark_owner(benchmark).tasks.parent)
    target = writable_cache() / f"mini-{MINI_VERSION}" / f"{benchmark}-{version}"
    prepared = target / "prepared"
    if _is_whole(prepared):
        return prepared
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(target) as work:
            _make_mini(benchmark, work)
            replace_directory(target, work)
    except OSError as error:
        if not _is_whole(prepared):  # else another process was first
            raise DamagedDataError(
                f"{target}: the miniature data of {benchmark} cannot be written "
                f"({_write_failure(error)}); free some space, "
                "or set MEDTASKS_CACHE to another directory."
            ) from error
    return prepared


def _write_failure(error: OSError) -> str:
    """Why a file cannot be written; for several files that were copied, the first reason."""
    if isinstance(error, shutil.Error):
        failures = error.args[0]
        _source, _destination, reason = failures[0]
        return str(reason)
    return error.strerror or str(error)


def _is_whole(prepared: Path) -> bool:
    """Whether the prepared data are unchanged since they were prepared."""
    try:
        changed = (prepared / "manifest.json").stat().st_mtime_ns
    except OSError:
        return False
    return _was_whole(prepared, changed)


@functools.lru_cache(maxsize=32)  # every document opens its dataset
def _was_whole(prepared: Path, manifest_mtime_ns: int) -> bool:
    """Whether the data were unchanged when they were verified, once per manifest."""
    del manifest_mtime_ns  # part of the key, so data that were made again are verified again
    try:
        return open_directory(prepared).is_whole()
    except DamagedDataError:
        return False


def _make_mini(name: str, work: Path) -> None:
    """Draw the miniature release of a benchmark below ``work``, and prepare it there."""
    benchmark = get_benchmark(name)
    source = work / "source"
    _draw_release(benchmark, source)
    try:
        prepare = benchmark.data.prepare_mini or partial(prepare_package, benchmark, mini=True)
        prepare(source, work / "prepared")
    except MedtasksError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from error
        # the directory that its message names is deleted now
        text = re.sub(rf"{re.escape(str(work))}/source(/|: )", "", str(error))
        raise MedtasksError(f"miniature data of {name}: {text}") from error


def _draw_release(benchmark: Benchmark, source: Path) -> None:
    """Have the benchmark's package draw its miniature release in the new directory ``source``."""
    if benchmark.data.mini is None:
        raise _no_miniature_error(benchmark)
    source.mkdir()
    try:
        benchmark.data.mini(source)
    except OSError:
        raise
    except Exception as error:  # the package's code
        raise MedtasksError(
            f"`mini` of benchmark {benchmark.name} fails {raised_in(error)}: {first_line(error)}."
        ) from error


def _no_miniature_error(benchmark: Benchmark) -> UsageError:
    """The error of a benchmark without miniature data, which names those that have some."""
    names: list[str] = []
    for candidate in all_benchmarks().values():
        if candidate.data.mini is not None:
            names.append(candidate.name)
    return UsageError(
        f"there are no miniature data for {benchmark.name!r}; choose from {', '.join(names)}."
    )


_HASHED_BY_CONTENT = (".py", ".json", ".jsonl", ".yaml")
"""Files that are hashed by their content; for others, their size is enough."""


@once
def _code_hash(folder: Path) -> str:
    """Hash of a package's code and data; miniature data are prepared again after every change."""
    digest = hashlib.sha256()
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    for path in sorted(files):
        name = path.relative_to(folder).as_posix()
        digest.update(name.encode() + b"\0" + _hashed_content(path) + b"\0")
    return digest.hexdigest()[:16]


def _hashed_content(path: Path) -> bytes:
    """The content of a file of code or data; of others only the size."""
    if path.suffix in _HASHED_BY_CONTENT:
        return path.read_bytes()
    return str(path.stat().st_size).encode()

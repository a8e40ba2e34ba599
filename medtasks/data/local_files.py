"""The data of benchmark folders: prepared when they are first needed, since their files are
here.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from typing_extensions import Unpack

from medtasks.catalog.benchmark import Benchmark, LocalFiles
from medtasks.core.errors import DataError, NotPreparedError, UsageError
from medtasks.core.locks import held_when_free
from medtasks.core.progress_bars import progress
from medtasks.data.package_release import prepare_package
from medtasks.data.prepare_commands import PictureOptions
from medtasks.data.prepared import Prepared, data_root, open_directory


def prepare_local(benchmark: Benchmark, **options: Unpack[PictureOptions]) -> Prepared:
    """Prepare the files of a benchmark folder, also if that was done before.

    Raises:
        UsageError: the benchmark is not that of a folder, or the data cannot be written.
        DataError: a row is faulty.
    """
    if benchmark.data.local is None:
        raise UsageError(
            f"{benchmark.name} is not a benchmark folder; run: {benchmark.data.prepare}"
        )
    return prepare_package(benchmark, benchmark.data.local.rows, **options)


def open_local(benchmark: Benchmark, local: LocalFiles) -> Prepared:
    """The prepared data of a benchmark folder, made on first use; of several processes, by one.

    Raises:
        NotPreparedError: rows have changed since they were prepared.
        DataError: a row is faulty.
    """
    directory = data_root() / benchmark.name
    if not (directory / "manifest.json").is_file():
        _prepare_once(benchmark, directory)
    prepared = open_directory(directory)
    if prepared.manifest.source.sha256 != _state(local):
        raise NotPreparedError(
            f"{local.rows.name} or the columns in benchmark.yaml have changed since "
            f"{benchmark.name} was prepared; prepare it again: {benchmark.data.prepare}"
        )
    return prepared


@functools.lru_cache(maxsize=32)  # every document opens its dataset
def _state(local: LocalFiles) -> str:
    """The hash of the rows, computed once per process."""
    return local.state()


def _prepare_once(benchmark: Benchmark, directory: Path) -> None:
    """Prepare the data, unless another process does meanwhile, which is waited for."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        # the data themselves are locked by the preparation
        lock = directory.with_name(f"{directory.name}-first-use")
        with held_when_free(lock, "prepared", _report_holder):
            if (directory / "manifest.json").is_file():
                return
            _print(f"preparing {benchmark.name} (once) …")
            with progress("verifying pictures") as bar:
                prepare_local(benchmark, progress=bar)
    except OSError as error:
        raise DataError(
            f"{directory}: the data of {benchmark.name} cannot be prepared there "
            f"({error.strerror or error}); set MEDTASKS_DATA to a directory that can be written."
        ) from error


def _report_holder(holder: str) -> None:
    _print(f"waiting for {holder}, which prepares data in {data_root()}")


def _print(line: str) -> None:
    print(f"medtasks: {line}", file=sys.stderr, flush=True)

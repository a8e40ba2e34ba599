"""The prepared data of a benchmark, or its miniature, opened by the benchmark's name."""

from __future__ import annotations

from pathlib import Path

from medtasks.catalog.benchmark import LocalFiles
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.core.errors import DamagedDataError, NotPreparedError
from medtasks.core.replacement import recover_directory
from medtasks.core.schema import shown
from medtasks.data.local_files import open_local
from medtasks.data.miniatures import prepare_mini
from medtasks.data.prepared import Prepared, data_root, is_mini, open_directory

_PARTS = ("records.jsonl", "media.jsonl")
"""Files of prepared data beside their manifest."""


def open_prepared(benchmark: str) -> Prepared:
    """The prepared data of ``benchmark``; or its miniature, made on first use (:func:`is_mini`).

    A benchmark folder has no miniature, and is prepared on first use.

    Raises:
        NotPreparedError: there are none; with the command that prepares them.
        DamagedDataError: they cannot be read, or the miniature data cannot be made.
    """
    local = _local_files(benchmark)
    if local is not None:
        return open_local(get_benchmark(benchmark), local)
    if is_mini(benchmark):
        return open_directory(prepare_mini(benchmark))
    directory = data_root() / benchmark
    command = get_benchmark(benchmark).data.prepare
    _require_manifest(benchmark, directory, command)
    prepared = open_directory(directory)
    if prepared.manifest.benchmark != benchmark:
        raise DamagedDataError(
            f"{directory / 'manifest.json'}: field `benchmark` is "
            f"{shown(prepared.manifest.benchmark)}, expected {benchmark!r}; prepare the data "
            f"again: {command}"
        )
    return prepared


def _local_files(benchmark: str) -> LocalFiles | None:
    """The files of a benchmark folder; None for another benchmark, or an unknown one."""
    described = all_benchmarks().get(benchmark)
    return None if described is None else described.data.local


def _require_manifest(benchmark: str, directory: Path, command: str) -> None:
    """Raise the error that applies if ``directory`` has no manifest of prepared data."""
    try:
        recover_directory(directory)
        if (directory / "manifest.json").is_file():
            return
        parts = [name for name in _PARTS if (directory / name).exists()]
    except OSError as error:
        raise DamagedDataError(
            f"{directory}: cannot be read ({error.strerror}); give access to it."
        ) from error
    if parts:
        raise DamagedDataError(
            f"{directory}: has {parts[0]}, but no manifest.json; prepare the data again: {command}"
        )
    raise NotPreparedError(
        f"{benchmark} is not prepared in {data_root()}; run: {command} "
        "(or set MEDTASKS_DATA=mini to try the miniature data)"
    )

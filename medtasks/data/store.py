"""Opens the prepared data of a benchmark, or its miniature: drawn pictures and rows, prepared on first use."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from pathlib import Path

from medtasks.catalog.contents import once, raised_in
from medtasks.catalog.registry import all_benchmarks, benchmark_owner, get_benchmark
from medtasks.core.cache import writable_cache
from medtasks.core.errors import MedtasksError, NotPreparedError, UsageError, first_line
from medtasks.core.files import recover_directory, temporary_beside
from medtasks.data.preparation import prepare_package
from medtasks.data.prepared import Prepared, data_root, is_mini, open_directory

MINI_VERSION = "6"  # bumped when the shared preparation code changes


def open_prepared(benchmark: str) -> Prepared:
    """The prepared data of ``benchmark``; or its miniature, made on first use (:func:`is_mini`). Raises
    :class:`NotPreparedError`, with the command that prepares them, if there are none."""
    known = get_benchmark(benchmark)
    if is_mini(benchmark):
        return open_directory(prepare_mini(benchmark))
    directory = data_root() / benchmark
    recover_directory(directory)
    if not (directory / "manifest.json").is_file():
        raise NotPreparedError(
            f"{benchmark} is not prepared in {data_root()}; run: {known.prepare} "
            "(or set MEDTASKS_DATA=mini to try the miniature data)"
        )
    return open_directory(directory)


def prepare_mini(benchmark: str) -> Path:
    """Directory of the prepared miniature data of ``benchmark``, made on first use.

    Safe for several processes: each works in its own directory, and the first to finish wins.
    """
    # the hash separates data made by different versions of the package
    version = _code_hash(benchmark_owner(benchmark).tasks.parent)
    target = writable_cache() / f"mini-{MINI_VERSION}" / f"{benchmark}-{version}"
    prepared = target / "prepared"
    if (prepared / "manifest.json").is_file():
        return prepared
    known = get_benchmark(benchmark)
    if known.mini is None:
        names = ", ".join(one.name for one in all_benchmarks().values() if one.mini is not None)
        raise UsageError(f"there are no miniature data for {benchmark!r}; choose from {names}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary_beside(target) as work:
            source = work / "source"
            source.mkdir()
            try:
                known.mini(source)
            except Exception as error:
                where = raised_in(error)
                raise MedtasksError(f"`mini` of benchmark {benchmark} fails {where}: {first_line(error)}.") from error
            try:
                prepare = known.prepare_mini or partial(prepare_package, known, mini=True)
                prepare(source, work / "prepared")
            except MedtasksError as error:  # the directory that its message names is deleted now
                text = re.sub(rf"{re.escape(str(work))}/source(/|: )", "", str(error))
                raise MedtasksError(f"miniature data of {benchmark}: {text}") from error
            os.rename(work, target)  # noqa: PTH104 - fails on a directory that is not empty, where Path.replace may not
    except OSError:
        if not (prepared / "manifest.json").is_file():
            raise
    return prepared


@once
def _code_hash(folder: Path) -> str:
    """Hash of a package's code and data; miniature data are prepared again after every change."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        text = path.suffix in (".py", ".json", ".jsonl", ".yaml")
        content = path.read_bytes() if text else str(path.stat().st_size).encode()
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:16]

"""Miniature data: procedural pictures and rows in the release formats, made on demand, prepared as real ones are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from medtasks.cache import cache_root
from medtasks.data.mini.kvasir import write_kvasir_source
from medtasks.data.mini.med_cmr import write_med_cmr_source
from medtasks.data.mini.medstream import write_medstream_source
from medtasks.data.mini.mi_cxr import write_mi_cxr_source
from medtasks.errors import MedtasksError, UsageError, first_line
from medtasks.files import temporary_beside
from medtasks.guard import raised_in

__all__ = [
    "MINI_VERSION",
    "prepare_mini",
    "write_kvasir_source",
    "write_med_cmr_source",
    "write_medstream_source",
    "write_mi_cxr_source",
]

MINI_VERSION = "4"
"""Changes whenever a picture or a row does."""


def prepare_mini(benchmark: str) -> Path:
    """Folder of the prepared miniature data of ``benchmark``, generated and prepared now where absent.

    Safe when several processes come at once: each works in a folder of its own, and the first one to finish wins.

    Raises:
        UsageError: there is no miniature of that name.
    """
    make, version = _MAKE.get(benchmark), MINI_VERSION
    if make is None:
        make, version = _others(benchmark)
    # the process-wide key keeps a folder made by another version of the generators from being taken for this one
    target = cache_root() / f"mini-{version}" / benchmark
    prepared = target / "prepared"
    if (prepared / "manifest.json").is_file():
        return prepared
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary_beside(target) as work:
            make(work / "source", work / "prepared")
            os.rename(work, target)  # noqa: PTH104 - fails on a folder that is not empty, where Path.replace may not
    except OSError:
        if not (prepared / "manifest.json").is_file():
            raise
    return prepared


def _others(benchmark: str) -> tuple[Callable[[Path, Path], None], str]:
    """How another package's miniature is made, and which version of it that is."""
    from medtasks.data.prepare import prepare_package
    from medtasks.plugin import all_benchmarks, benchmark_owner

    found = all_benchmarks().get(benchmark)
    write = None if found is None else found.mini
    if found is None or write is None:
        raise UsageError(f"there are no miniature data of {benchmark!r}; choose from {', '.join(_MAKE)}.")

    def make(source: Path, out: Path) -> None:
        source.mkdir(parents=True)
        try:
            write(source)
        except Exception as error:
            told = f"fails {raised_in(error)}: {first_line(error)}"
            raise MedtasksError(f"`mini` of benchmark {benchmark} {told}.") from error
        prepare_package(found, source, out, relative=True, mini=True)

    return make, _code_hash(benchmark_owner(benchmark).module)


def _code_hash(module: str) -> str:
    """Of a package's whole code: whoever writes a loader sees what it does now."""
    folder = Path(str(import_module(module).__file__)).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{folder.name}-{digest.hexdigest()[:16]}"


def _kvasir(source: Path, out: Path) -> None:
    from medtasks.data.prepare import prepare_kvasir

    write_kvasir_source(source)
    prepare_kvasir(str(source), out, images=source / "images", relative=True, mini=True)


def _transformed(source: Path, out: Path) -> None:
    from medtasks.data.prepare import prepare_transformed
    from medtasks.data.store import open_directory

    del source  # it is made of the other miniature
    prepare_transformed(out, original=open_directory(prepare_mini("kvasir_vqa_x1")), variants=2, mini=True)


def _mi_cxr(source: Path, out: Path) -> None:
    from medtasks.data.prepare import prepare_mi_cxr

    write_mi_cxr_source(source)
    rows = [source / "micxr_test.jsonl", source / "micxr_icr_variant.jsonl"]
    prepare_mi_cxr(rows, source, out, relative=True, mini=True)


def _med_cmr(source: Path, out: Path) -> None:
    from medtasks.data.prepare import prepare_med_cmr

    write_med_cmr_source(source)
    prepare_med_cmr(str(source), out, relative=True, mini=True)


def _medstream(source: Path, out: Path) -> None:
    from medtasks.data.prepare import prepare_medstream

    write_medstream_source(source)
    prepare_medstream(str(source / "records"), source / "media", out, relative=True, mini=True)


_MAKE: dict[str, Callable[[Path, Path], None]] = {
    "kvasir_vqa_x1": _kvasir,
    "kvasir_vqa_x1_transformed": _transformed,
    "mi_cxr": _mi_cxr,
    "med_cmr": _med_cmr,
    "medstreambench": _medstream,
}
"""How each miniature is generated and prepared."""

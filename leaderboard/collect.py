"""Find runs and digest them; what cannot be read is reported and does not stop the others."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from medtasks.data.prepared import data_root, is_mini
from medtasks.errors import MedtasksError
from medtasks.files import canonical_json, recover_directory
from medtasks.results.find import SUFFIX, require_directory, run_folders
from medtasks.results.folder import file_sha256, folder_digest, read_manifest
from medtasks.results.run import data_facts
from medtasks.spec import load_spec

from .board import Refused
from .digest import Digest
from .digest_cache import DigestCache
from .numbers import safe_name
from .plain import PlainRun, converted, plain_digest, plain_runs
from .reading import digest_record, digest_run
from .redaction import shown

LARGE = 64 * 2**20
"""From this many bytes on, runs are read in several processes; with less, these would hardly have started."""
MOST_PROCESSES = 8
NO_RUN = "it contains no result directory (…_medtasks)"
"""Why a path without anything to rank is refused."""
Progress = Callable[[int, int], None]
"""Called with the number of runs done and of all runs."""


@dataclass(frozen=True)
class Unread:
    """A path that the search for runs skipped: a link to a result directory, or a directory that cannot be listed.

    ``found`` says what it is, ``fix`` what to do.
    """

    path: Path
    found: str
    fix: str
    link: bool


class Found(NamedTuple):
    """Result directories, runs of our tasks that have only lmms-eval's logs, and what was not searched; each sorted."""

    folders: list[Path]
    plain: list[PlainRun]
    unread: list[Unread]


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """The result directories in ``paths``, as in :func:`find_everything`.

    Raises:
        UsageError: one of the paths is not a directory.
    """
    return find_everything(paths).folders


def collect(
    paths: Sequence[Path], cache: Path | None = None, progress: Progress | None = None
) -> tuple[list[Digest], list[Refused]]:
    """Digest all runs in ``paths``; return the digests, sorted by content hash, and what was refused, with reasons.

    Runs with the same content count once. With a ``cache``, unchanged directories are not scored again.

    Raises:
        UsageError: one of the paths is not a directory.
    """
    found = find_everything(paths)
    runs: list[Path | PlainRun] = [*found.folders, *found.plain]
    kept = DigestCache(cache)
    digests: dict[str, Digest] = {}
    refused = [
        Refused(folder=shown(path.resolve().name), reason=NO_RUN)
        for path in dict.fromkeys(paths)
        if not any(_root(run).is_relative_to(path.resolve()) for run in runs)
    ]
    read = {folder.resolve() for folder in found.folders}
    refused += [
        Refused(folder=shown(one.path.name), reason=f"{one.found}; {one.fix}")
        for one in found.unread
        if not one.link or one.path.resolve() not in read  # otherwise its target is shown
    ]
    told = progress or (lambda *_: None)
    told(0, len(runs))
    ahead = _read_ahead(runs, kept, told)
    for number, run in enumerate(runs, start=1):
        try:
            digest = _digest(run, kept)
        except MedtasksError as error:
            refused.append(Refused(folder=_name(run), reason=_reason(error, run)))
        except Exception as error:  # untrusted input: one bad run must not hide the others
            refused.append(Refused(folder=_name(run), reason=_reason(error, run, type(error).__name__)))
        else:
            known = digests.setdefault(digest.facts.digest, digest)
            if digest.facts.folder < known.facts.folder:  # the same copy for any order of paths
                digests[digest.facts.digest] = digest
        if not ahead:
            told(number, len(runs))
    return [digests[key] for key in sorted(digests)], sorted(refused, key=lambda one: (one.folder, one.reason))


def _read_ahead(runs: Sequence[Path | PlainRun], cache: DigestCache, progress: Progress) -> bool:
    """Digest runs into the cache in several processes, if there is much to read; return whether there was.

    Whatever cannot be read there, or not cached, is read in this process, which reports the reason. It loads digests
    only after the others have ended, because those of many runs need as much memory.
    """
    processes = min(MOST_PROCESSES, os.cpu_count() or 1)
    served = threading.current_thread() is not threading.main_thread()  # a fork would copy the locks of other threads
    if served or cache.folder is None or processes < 2 or sum(_unread_bytes(run, cache) for run in runs) < LARGE:
        return False
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(processes, context, _end_with_parent)
    try:
        reading = [pool.submit(_into_cache, run, cache) for run in runs]
        for number, one in enumerate(reading, start=1):
            wait([one])
            progress(number, len(runs))
    finally:
        pool.shutdown(cancel_futures=True)
    return True


def _unread_bytes(run: Path | PlainRun, cache: DigestCache) -> int:
    """Size of the run's files; 0 if its digest is cached, or if they cannot be read."""
    with contextlib.suppress(Exception):  # reported when the run is read
        return 0 if cache.knows(_key(run, _content(run))) else sum(path.stat().st_size for path in _files(run))
    return 0


def _end_with_parent() -> None:
    """Otherwise this process would wait for work forever if its parent is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _into_cache(run: Path | PlainRun, cache: DigestCache) -> None:
    with contextlib.suppress(Exception):
        _digest(run, cache)


def state_of_results(paths: Sequence[Path]) -> str | None:
    """All that a board takes from ``paths``: the runs, by content, and what is not read; as text.

    None if a run cannot be read; :func:`collect` says why.

    Raises:
        UsageError: one of the paths is not a directory.
    """
    found = find_everything(paths)
    runs: list[Path | PlainRun] = [*found.folders, *found.plain]
    try:
        keys = [_key(run, _content(run)) for run in runs]
    except Exception:  # untrusted input
        return None
    unread = [[shown(one.path.name), one.found, one.link] for one in found.unread]
    return canonical_json([keys, [shown(path.resolve().name) for path in paths], unread])


def _content(run: Path | PlainRun) -> str:
    if isinstance(run, PlainRun):
        return plain_digest(run)
    recover_directory(run)
    return folder_digest(run)


def _key(run: Path | PlainRun, content: str) -> str:
    return f"{_name(run)}\0{content}\0{_beside(run)}"


def _digest(run: Path | PlainRun, cache: DigestCache) -> Digest:
    content = _content(run)
    key = _key(run, content)
    digest = cache.read(key)
    if digest is None or digest.facts.digest != content:
        digest = (
            digest_run(run) if isinstance(run, Path) else digest_record(converted(run), run.name, content, trusted=True)
        )
        cache.keep(digest, key)
    return digest


def _files(run: Path | PlainRun) -> list[Path]:
    """The files that a digest depends on."""
    if isinstance(run, PlainRun):
        return run.files
    return [run / "manifest.json", *sorted((run / "samples").glob("*.jsonl"))]


def _beside(run: Path | PlainRun) -> str:
    """What else a digest depends on: the data prepared here."""
    if isinstance(run, Path):
        return " ".join(map(_prepared, sorted(read_manifest(run).data)))
    benchmarks = sorted({load_spec(task).metadata.benchmark for task in run.logs})
    return " ".join(data_facts(name).fingerprint for name in benchmarks)


def _prepared(benchmark: str) -> str:
    """A hash of the manifest of the data prepared for a benchmark that a run names; ``mini`` for miniature data."""
    if is_mini():
        return "mini"
    path = data_root() / benchmark / "manifest.json"
    return file_sha256(path) if safe_name(benchmark) == benchmark and path.is_file() else ""


def find_everything(paths: Sequence[Path]) -> Found:
    """All runs in ``paths``, which are result directories or trees that contain some, each once.

    Hidden directories are skipped, except for a run that a crash left there while it was being replaced. Links to
    result directories (``…_medtasks``) are not followed.

    Raises:
        UsageError: one of the paths is not a directory.
    """
    folders: dict[Path, Path] = {}
    plain: dict[tuple[Path, str], PlainRun] = {}
    unread: dict[Path, Unread] = {}

    def closed(error: OSError) -> None:
        path = Path(str(error.filename))
        unread[path] = Unread(path, f"it cannot be listed ({error.strerror})", "give access to it", link=False)

    def other(here: Path, names: list[str], files: list[str]) -> None:
        for name in (*names, *files):
            if name.endswith(SUFFIX) and (here / name).is_symlink():
                unread[here / name] = Unread(here / name, "it is a link", "copy what it points to", link=True)
        for run in plain_runs(here, files):
            plain.setdefault((here.resolve(), run.stamp), run)

    for path in paths:
        require_directory(path)
        for folder in run_folders(path, other, closed):
            folders.setdefault(folder.resolve(), folder)
    return Found(
        [folders[key] for key in sorted(folders)],
        [plain[key] for key in sorted(plain)],
        [unread[key] for key in sorted(unread)],
    )


def _root(run: Path | PlainRun) -> Path:
    return (run if isinstance(run, Path) else run.directory).resolve()


def _name(run: Path | PlainRun) -> str:
    return shown(run.resolve().name if isinstance(run, Path) else run.name)


def _reason(error: Exception, run: Path | PlainRun, kind: str = "") -> str:
    """The error on one line, with directories shortened to their names."""
    place = run if isinstance(run, Path) else run.directory
    text = " ".join(str(error).split())
    for folder in (str(place.resolve()), str(place)):
        text = text.replace(folder, _name(run) if isinstance(run, Path) else place.resolve().name)
    text = shown(text)[:500] or "it cannot be read"
    return f"it cannot be read ({kind}: {text})" if kind else text

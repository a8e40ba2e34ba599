"""Find runs and score them; what cannot be read is reported and does not stop the others."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from medtasks.catalog.spec import load_specs
from medtasks.core.errors import MedtasksError, machine_fault
from medtasks.core.files import canonical_json
from medtasks.core.redaction import shown
from medtasks.core.text import first_names
from medtasks.runs.find import NO_RUN, SUFFIX, name_below, require_directory, run_folders
from medtasks.scoring.run_record import RunFolder, read_manifest

from ..schema.board import Refused
from ..verify.model_identity import model_name
from ..verify.scored_run import RunStore, ScoredRun, scored_run

LOG = re.compile(r".+_samples_(?P<task>.+)\.jsonl", re.I)
LARGE = 64 * 2**20
"""From this many bytes on, runs are read in several processes; with less, these would hardly have
started.
"""
MOST_PROCESSES = 8
COPY = "copy what it points to"
"""What to do about a link."""
LOGS = (
    "it has only lmms-eval's logs",
    "make a run of them: `medtasks score LOG --from lmms-eval --out NEW_DIR`",
)
Progress = Callable[[int, int], None]
"""Called with the number of runs done and of all runs."""


class Found(NamedTuple):
    """Result directories; and by path what was not read (a link to one, a directory that cannot be
    listed, or one with logs of our tasks, but without a result directory), with what it is and what
    to do.
    """

    runs: list[RunFolder]
    unread: dict[Path, tuple[str, str]]


def collect(
    paths: Sequence[Path], store: RunStore | None = None, progress: Progress = lambda _, __: None
) -> tuple[list[ScoredRun], list[Refused]]:
    """All runs in ``paths``, sorted by content hash, and what was refused, with reasons.

    Runs with the same content count once. With a ``store``, unchanged directories are not scored
    again.

    Raises:
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    found = find_everything(paths)
    links = {run.directory: linked for run in found.runs if (linked := links_in(run.directory))}
    runs = [run for run in found.runs if run.directory not in links]
    store = store or RunStore(None)
    read = {run.directory.resolve() for run in found.runs}
    refused = [
        (path.resolve().name, NO_RUN)
        for path in dict.fromkeys(paths)
        if not any(place.is_relative_to(path.resolve()) for place in read)
    ]
    refused += [
        (name_below(path, paths), f"{what}; {fix}")
        for path, (what, fix) in found.unread.items()
        if path.resolve() not in read  # otherwise it is a link, whose target is shown
    ]
    for directory, names in links.items():
        what = "is a link" if len(names) == 1 else "are links"
        refused.append((name_below(directory, paths), f"{first_names(names)} {what}; {COPY}"))
    scored: dict[str, ScoredRun] = {}
    progress(0, len(runs))
    ahead = _score_ahead(runs, store, progress)
    for number, run in enumerate(runs, start=1):
        try:
            one = scored_run(run, store)
        except Exception as error:  # untrusted input: one bad run must not hide the others
            if (fault := machine_fault(error)) is not None:
                raise fault from error
            text = " ".join(
                str(error).split()
            )  # on one line, with directories shortened to their names
            for folder in (str(run.directory.resolve()), str(run.directory)):
                text = text.replace(folder, run.name)
            text = shown(text)[:500] or "it cannot be read"
            ours = isinstance(error, MedtasksError)
            refused.append(
                (
                    submission_name(run),
                    text if ours else f"it cannot be read ({type(error).__name__}: {text})",
                )
            )
        else:
            known = scored.setdefault(one.digest, one)
            scored[one.digest] = min(
                known, one, key=lambda run: run.public.folder
            )  # for any order of paths
        if not ahead:
            progress(number, len(runs))
    reasons = sorted((shown(folder), reason) for folder, reason in refused)
    return [scored[key] for key in sorted(scored)], [
        Refused(folder=name, reason=why) for name, why in reasons
    ]


def _score_ahead(runs: Sequence[RunFolder], store: RunStore, progress: Progress) -> bool:
    """Score runs into the store in several processes, if there is much to read; return whether
    there was. What fails is read in this process, which reports the reason, and loads runs when the
    others, with their memory, have ended.
    """
    processes = min(MOST_PROCESSES, os.cpu_count() or 1)
    served = (
        threading.current_thread() is not threading.main_thread()
    )  # a fork would copy the locks of other threads
    if served or store.folder is None or processes < 2:
        return False
    unread = 0
    for run in runs:
        with contextlib.suppress(Exception):  # reported when the run is read
            if not store.knows(store.key_of(run.content, *run.contains())):
                unread += sum(path.stat().st_size for path in run.files)
    if unread < LARGE:
        return False
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(processes, context, _end_with_parent)
    try:
        reading = [pool.submit(_into_store, run, store) for run in runs]
        for number, one in enumerate(reading, start=1):
            wait([one])
            progress(number, len(runs))
    finally:
        pool.shutdown(cancel_futures=True)
    return True


def _end_with_parent() -> None:
    """Otherwise this process would wait for work forever if its parent is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _into_store(run: RunFolder, store: RunStore) -> None:
    with contextlib.suppress(Exception):
        scored_run(run, store)


def state_of_results(paths: Sequence[Path], store: RunStore) -> str | None:
    """All that a board takes from ``paths``: the runs, by content, and what is not read; as text.

    None if a run cannot be read; :func:`collect` says why.
    """
    found = find_everything(paths)
    try:
        keys = []
        for run in found.runs:
            key = store.key_of(run.content, *run.contains())
            keys.append([shown(run.name), key, links_in(run.directory)])
    except Exception:  # untrusted input
        return None
    unread = [[shown(name_below(path, paths)), what] for path, (what, _) in found.unread.items()]
    return canonical_json([keys, [shown(path.resolve().name) for path in paths], unread])


def links_in(folder: Path) -> list[str]:
    """The links below a result directory, which may point to any file of this machine."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink()
    )


def find_everything(paths: Sequence[Path]) -> Found:
    """All runs in ``paths``, which are result directories or trees that contain some, each once.

    Hidden directories are skipped, except for a run that a crash left there while it was being
    replaced. Links to result directories (``…_medtasks``) are not followed.
    """
    folders: dict[Path, Path] = {}
    unread: dict[Path, tuple[str, str]] = {}

    def closed(error: OSError) -> None:
        unread[Path(error.filename)] = (
            f"it cannot be listed ({error.strerror})",
            "give access to it",
        )

    def other(here: Path, names: list[str], files: list[str]) -> None:
        links = [
            here / name
            for name in (*names, *files)
            if name.endswith(SUFFIX) and (here / name).is_symlink()
        ]
        unread.update(dict.fromkeys(links, ("it is a link", COPY)))
        tasks = {match["task"] for match in map(LOG.fullmatch, files) if match is not None}
        if tasks & load_specs().keys() and not any(name.endswith(SUFFIX) for name in names):
            unread[here.resolve()] = LOGS

    for path in paths:
        require_directory(path)
        for folder in run_folders(path, other, closed):
            folders.setdefault(folder.resolve(), folder)
    runs = [RunFolder(folders[key], name_below(key, paths)) for key in sorted(folders)]
    return Found(runs, dict(sorted(unread.items())))


def submission_name(run: RunFolder) -> str:
    """The name of a submission: its path below the given root, and its model if the manifest can be
    read.
    """
    with contextlib.suppress(MedtasksError, OSError):
        return f"{run.name} ({model_name(read_manifest(run.directory))})"
    return run.name

"""Find runs and score them; what cannot be read is reported and does not stop the others."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from medtasks.catalog.spec import load_specs
from medtasks.core.errors import MedtasksError, machine_fault
from medtasks.core.files import canonical_json
from medtasks.core.process_end import end_process
from medtasks.core.redaction import shown
from medtasks.core.text import first_names
from medtasks.runs.find import NO_RUN, SUFFIX, name_below, require_directory, run_folders
from medtasks.scoring.run_folder import RunFolder, read_manifest

from ..schema.board import Refused
from ..verify.claimed_latency import times_state
from ..verify.model_identity import model_name
from ..verify.scored_run import RunStore, ScoredRun, scored_run

LOG = re.compile(r".+_samples_(?P<task>.+)\.jsonl", re.I)
LARGE = 64 * 2**20
"""Bytes from which on runs are read in several processes; these take a while to start."""
MOST_PROCESSES = 8
COPY = "copy what it points to"
"""What to do about a link."""
MAKE_A_RUN = "make a run of them: `medtasks score LOG --from lmms-eval --out NEW_DIR`"
"""What to do about lmms-eval's logs."""
Progress = Callable[[int, int], None]
"""Called with the number of runs done and of all runs."""


@dataclass(frozen=True)
class Unread:
    """What a path is that was not read, and what to do about it."""

    what: str
    fix: str


LOGS = Unread("it has only lmms-eval's logs", MAKE_A_RUN)
"""A directory with logs of our tasks, but without a result directory."""


@dataclass(frozen=True)
class Everything:
    """The result directories below some paths, and what was not read.

    That is a link to a result directory, a directory that cannot be listed, or one of `LOGS`.
    """

    runs: list[RunFolder]
    unread: dict[Path, Unread]


def collect(
    paths: Sequence[Path], store: RunStore | None = None, progress: Progress = lambda _, __: None
) -> tuple[list[ScoredRun], list[Refused]]:
    """All runs in ``paths``, sorted by content hash, and what was refused, with reasons.

    Runs with the same content count once. With a ``store``, unchanged directories are not scored
    again.

    Raises:
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    everything = find_everything(paths)
    refused = _unread_paths(paths, everything)
    folders: list[RunFolder] = []
    for folder in everything.runs:
        links = links_in(folder.directory)
        if links:
            name = name_below(folder.directory, paths)
            refused.append(Refused(folder=name, reason=_links_reason(links)))
        else:
            folders.append(folder)

    store = store or RunStore(None)
    runs: list[ScoredRun] = []
    progress(0, len(folders))
    is_counted = _score_ahead(folders, store, progress)
    for number, folder in enumerate(folders, start=1):
        outcome = _scored_or_refused(folder, store)
        if isinstance(outcome, Refused):
            refused.append(outcome)
        else:
            runs.append(outcome)
        if not is_counted:
            progress(number, len(folders))
    return _distinct_runs(runs), _sorted_refusals(refused)


def _distinct_runs(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """The runs by content hash; of runs with the same content the one whose folder sorts first."""
    by_digest: dict[str, ScoredRun] = {}
    for run in sorted(runs, key=lambda run: run.public.folder):
        by_digest.setdefault(run.digest, run)
    return [by_digest[digest] for digest in sorted(by_digest)]


def _sorted_refusals(refused: Sequence[Refused]) -> list[Refused]:
    """The refusals by folder and reason, without what folders' names must not show."""
    refusals = []
    for refusal in refused:
        refusals.append(refusal.model_copy(update={"folder": shown(refusal.folder)}))
    return sorted(refusals, key=lambda refusal: (refusal.folder, refusal.reason))


def _links_reason(links: Sequence[str]) -> str:
    """The reason why a run with these links is refused."""
    what = "is a link" if len(links) == 1 else "are links"
    return f"{first_names(links)} {what}; {COPY}"


def _scored_or_refused(run: RunFolder, store: RunStore) -> ScoredRun | Refused:
    """The run as it is scored here, or why it cannot be read.

    Raises:
        MachineError: this machine is at fault.
    """
    try:
        return scored_run(run, store)
    except Exception as error:  # untrusted input: one bad run must not hide the others
        fault = machine_fault(error)
        if fault is not None:
            raise fault from error
        return Refused(folder=submission_name(run), reason=_refusal(error, run))


def _unread_paths(paths: Sequence[Path], everything: Everything) -> list[Refused]:
    """Paths without a run, and directories that were not read."""
    read = {run.directory.resolve() for run in everything.runs}
    refused = []
    for path in dict.fromkeys(paths):
        root = path.resolve()
        if not any(directory.is_relative_to(root) for directory in read):
            refused.append(Refused(folder=root.name, reason=NO_RUN, has_run=False))
    for path, unread in everything.unread.items():
        # if the target was read, the path is a link, whose target is shown
        if path.resolve() not in read:
            reason = f"{unread.what}; {unread.fix}"
            refused.append(Refused(folder=name_below(path, paths), reason=reason))
    return refused


def _refusal(error: Exception, run: RunFolder) -> str:
    """The error on one line, with the run's directory shortened to its name."""
    text = " ".join(str(error).split())
    for folder in (str(run.directory.resolve()), str(run.directory)):
        text = text.replace(folder, run.name)
    text = shown(text)[:500] or "it cannot be read"
    if isinstance(error, MedtasksError):
        return text
    return f"it cannot be read ({type(error).__name__}: {text})"


def _score_ahead(runs: Sequence[RunFolder], store: RunStore, progress: Progress) -> bool:
    """Score runs into the store in several processes, if there is much to read.

    What fails is read in this process, which reports the reason, and loads runs when the others,
    with their memory, have ended. Returns whether runs were scored.
    """
    processes = min(MOST_PROCESSES, os.cpu_count() or 1)
    # a fork would copy the locks of other threads
    is_served = threading.current_thread() is not threading.main_thread()
    if is_served or store.folder is None or processes < 2 or _unread_bytes(runs, store) < LARGE:
        return False
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(processes, context, _end_with_parent)
    try:
        jobs = [pool.submit(_into_store, run, store) for run in runs]
        for number, job in enumerate(jobs, start=1):
            wait([job])
            progress(number, len(runs))
    finally:
        pool.shutdown(cancel_futures=True)
    return True


def _unread_bytes(runs: Sequence[RunFolder], store: RunStore) -> int:
    """The size of the runs that the store does not have."""
    size = 0
    for run in runs:
        with contextlib.suppress(Exception):  # reported when the run is read
            if not store.knows(store.key_of(run.content, *run.contains())):
                size += sum(path.stat().st_size for path in run.files)
    return size


def _end_with_parent() -> None:
    """End this process with its parent; otherwise it waits for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        end_process(1)

    threading.Thread(target=watch, daemon=True).start()


def _into_store(run: RunFolder, store: RunStore) -> None:
    with contextlib.suppress(Exception):
        scored_run(run, store)


def state_of_results(paths: Sequence[Path], store: RunStore) -> str | None:
    """All that a board takes from ``paths``: the runs, by content, and what is not read; as text.

    None if a run cannot be read; :func:`collect` says why.
    """
    everything = find_everything(paths)
    try:
        keys = []
        for run in everything.runs:
            key = store.key_of(run.content, *run.contains())
            keys.append([shown(run.name), key, links_in(run.directory), times_state(run.directory)])
    except Exception:  # untrusted input
        return None
    names = [shown(path.resolve().name) for path in paths]
    unread = []
    for path, reason in everything.unread.items():
        unread.append([shown(name_below(path, paths)), reason.what])
    return canonical_json([keys, names, unread])


def links_in(folder: Path) -> list[str]:
    """The links below a result directory, which may point to any file of this machine."""
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    return sorted(path.relative_to(folder).as_posix() for path in links)


def find_everything(paths: Sequence[Path]) -> Everything:
    """All runs in ``paths``, which are result directories or trees that contain some, each once.

    Hidden directories are skipped, except for a run that a crash left there while it was being
    replaced. Links to result directories (``…_medtasks``) are not followed.
    """
    folders: dict[Path, Path] = {}
    unread = _UnreadPaths()
    for path in paths:
        require_directory(path)
        for folder in run_folders(path, unread.note_contents, unread.note_error):
            folders.setdefault(folder.resolve(), folder)
    runs = [RunFolder(folders[place], name_below(place, paths)) for place in sorted(folders)]
    return Everything(runs, dict(sorted(unread.reasons.items())))


class _UnreadPaths:
    """Notes what a walk through directories cannot read as a run, with the ``reasons`` by path."""

    def __init__(self) -> None:
        """Start without notes."""
        self.reasons: dict[Path, Unread] = {}

    def note_error(self, error: OSError) -> None:
        """Note a directory that cannot be listed."""
        what = f"it cannot be listed ({error.strerror})"
        self.reasons[Path(error.filename)] = Unread(what, "give access to it")

    def note_contents(self, directory: Path, names: list[str], files: list[str]) -> None:
        """Note links to result directories, and logs without results, in a directory."""
        for name in (*names, *files):
            if name.endswith(SUFFIX) and (directory / name).is_symlink():
                self.reasons[directory / name] = Unread("it is a link", COPY)
        has_results = any(name.endswith(SUFFIX) for name in names)
        if not has_results and _are_our_logs(files):
            self.reasons[directory.resolve()] = LOGS


def _are_our_logs(files: Collection[str]) -> bool:
    """Whether one of the files is a log of a task that is installed."""
    specs = load_specs()
    for file in files:
        match = LOG.fullmatch(file)
        if match is not None and match["task"] in specs:
            return True
    return False


def submission_name(run: RunFolder) -> str:
    """The name of a submission: its path below the given root, and its model if it can be read."""
    with contextlib.suppress(MedtasksError, OSError):
        return f"{run.name} ({model_name(read_manifest(run.directory))})"
    return run.name

"""Preparing data that a run needs: by one process, once the user has agreed to the download.

The user agrees with ``MEDTASKS_DOWNLOAD=yes``, or by answering one question on the terminal about
all benchmarks of the run. Without either, the run stops with the command that prepares the data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from medtasks.core.errors import (
    DataError,
    MachineError,
    MedtasksError,
    NotPreparedError,
    first_line,
    machine_fault,
)
from medtasks.core.locks import held_when_free, is_held
from medtasks.core.progress_bars import progress
from medtasks.core.settings import Consent, current_settings
from medtasks.core.text import byte_count, first_names, printable
from medtasks.data.consent import can_ask, is_agreed
from medtasks.data.hub import offline_switch
from medtasks.data.missing_data import (
    MissingData,
    PlannedDownload,
    bytes_to_fetch,
    missing_data,
    planned_downloads,
    require_space,
)
from medtasks.data.package_release import prepare_package
from medtasks.data.preparation_report import preparation_lines
from medtasks.data.prepared import Prepared, data_root

FIRST_PROCESS_WAIT = 600.0
"""Seconds that other processes of a command wait for the first one to begin."""
_PAUSE = 0.5


def provide_data(benchmarks: Sequence[str]) -> None:
    """Prepare those benchmarks that are not prepared, if the user agrees to the download.

    One process does it; others wait, and report that they do.

    Raises:
        NotPreparedError: data are missing, and may not or cannot be prepared automatically.
        DamagedDataError: prepared data cannot be read.
    """
    missing = missing_data(benchmarks)
    if not missing:
        return
    consent = current_settings().download
    _refuse_without_consent(missing, consent)
    if consent is Consent.ASK and current_settings().rank > 0:
        _wait_for_first_process(benchmarks)
        return
    with _only_process():
        missing = missing_data(benchmarks)  # another process may have prepared them
        if missing:
            _prepare(missing, consent)


def _refuse_without_consent(missing: Sequence[MissingData], consent: Consent) -> None:
    """Raise the error for the first missing data unless the user agrees, or can be asked."""
    first = missing[0]
    if consent is Consent.YES:
        return
    if consent is Consent.NO:
        raise NotPreparedError(first.sentence)
    switch = offline_switch()
    if switch is not None and any(entry.preparation.files for entry in missing):
        raise NotPreparedError(f"{first.sentence}; {switch} is set, so nothing is downloaded")
    if not can_ask():
        names = first_names(entry.name for entry in missing)
        raise NotPreparedError(
            f"{first.sentence}; or set MEDTASKS_DOWNLOAD=yes, and the run downloads and prepares "
            f"{names} itself ({_licences(missing)})"
        )


def _licences(missing: Sequence[MissingData]) -> str:
    """The licences of the data."""
    licences = dict.fromkeys(entry.benchmark.publication.licence for entry in missing)
    return f"{'licence' if len(licences) == 1 else 'licences'}: {', '.join(licences)}"


@contextmanager
def _only_process() -> Iterator[None]:
    """Wait until no other process prepares data automatically in the data directory."""
    lock = _lock()
    with ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held_when_free(lock, "prepared", _report_holder))
        except OSError as error:
            raise NotPreparedError(
                f"{lock.parent}: cannot be written ({error.strerror}); set MEDTASKS_DATA to a "
                "directory of yours."
            ) from error
        yield


def _lock() -> Path:
    """What processes lock that prepare data automatically."""
    return data_root().resolve() / "automatic"


def _report_holder(holder: str) -> None:
    _print(f"waiting for {holder}, which prepares data in {data_root()}")


def _wait_for_first_process(benchmarks: Sequence[str]) -> None:
    """Wait until the first process of the command has asked the user and prepared the data.

    Raises:
        NotPreparedError: it has not.
    """
    lock = _lock()
    _print("waiting for the first process of the command to ask about missing data")
    has_begun = False
    deadline = time.monotonic() + FIRST_PROCESS_WAIT
    while True:
        is_busy = is_held(lock)  # before the data, which are there when the lock is free
        missing = missing_data(benchmarks)
        if not missing:
            return
        has_ended = has_begun and not is_busy
        if has_ended or (not has_begun and not is_busy and time.monotonic() > deadline):
            raise NotPreparedError(missing[0].sentence)
        if is_busy and not has_begun:
            has_begun = True
            _print("the first process of the command is asking, or prepares the data")
        time.sleep(_PAUSE)


def _prepare(missing: Sequence[MissingData], consent: Consent) -> None:
    """Prepare the missing data in order, once the user has agreed."""
    planned = _planned(missing, consent)
    require_space(planned)
    if consent is Consent.ASK and not is_agreed(_question(planned)):
        raise NotPreparedError(missing[0].sentence)
    if consent is Consent.YES:
        for download in planned:
            _print(f"preparing {printable(str(download))}")
    for entry in missing:
        _wait_for_command(entry)
        if missing_data([entry.name]):
            _prepare_benchmark(entry)


def _planned(missing: Sequence[MissingData], consent: Consent) -> list[PlannedDownload]:
    """The planned downloads; none, with a note, if the hub may not or cannot list their files.

    Without the hub, its cache on this machine may have all of them.

    Raises:
        NotPreparedError: the hub cannot be reached, and the user would have to be asked.
    """
    names = first_names(entry.name for entry in missing)
    switch = offline_switch()
    if switch is not None and any(entry.preparation.files for entry in missing):
        _print(f"preparing {names} from the hub's cache, because {switch} is set")
        return []
    try:
        return planned_downloads(missing)
    except DataError as error:
        if consent is Consent.ASK:
            raise _error_of(missing[0], error) from error
        _print(f"preparing {names} from the hub's cache, if it has them: {error}")
        return []


def _question(planned: Sequence[PlannedDownload]) -> str:
    """What the user is asked: benchmarks, sizes, licences and places."""
    from huggingface_hub import constants

    lines = ["medtasks: the data of these benchmarks are not prepared yet:"]
    for download in planned:
        lines.append(f"  {printable(str(download))}")
    total = bytes_to_fetch(planned)
    if total == 0:
        lines.append(f"Prepare them in {data_root()}? Nothing has to be downloaded.")
        return "\n".join(lines)
    is_limit = any(download.missing.preparation.is_limit for download in planned)
    limit = "up to " if is_limit else ""
    lines.append(
        f"Download {limit}{byte_count(total)} from {constants.ENDPOINT} to "
        f"{constants.HF_HUB_CACHE}, and prepare the data in {data_root()}?"
    )
    return "\n".join(lines)


def _wait_for_command(entry: MissingData) -> None:
    """Wait while a ``medtasks prepare`` command prepares the benchmark."""
    with held_when_free(data_root().resolve() / entry.name, "prepared", _report_holder):
        pass


def _prepare_benchmark(entry: MissingData) -> None:
    """Prepare one benchmark, and print what was prepared."""
    try:
        for prepared in _preparation(entry):
            for line in preparation_lines(prepared):
                _print(line)
    except (MedtasksError, OSError) as error:
        raise _error_of(entry, error) from error


def _preparation(entry: MissingData) -> Iterator[Prepared]:
    """The data that the benchmark's command prepares, or that its package reads from the hub."""
    command = entry.benchmark.data.command
    if command is not None:
        yield from command.run(progress, **entry.preparation.options)
        return
    with progress("verifying media") as bar:
        prepared = prepare_package(entry.benchmark, None, progress=bar)
    yield prepared


def _error_of(entry: MissingData, error: Exception) -> MedtasksError:
    """The error of data that could not be prepared automatically, and how to continue."""
    fault = machine_fault(error)
    cause = first_line(fault or error).rstrip(".")
    message = (
        f"{entry.name} is missing in {data_root()} and could not be prepared: {cause} (to "
        f"continue, repeat the command, or run: {entry.benchmark.data.prepare})"
    )
    return NotPreparedError(message) if fault is None else MachineError(message)


def _print(line: str) -> None:
    print(f"medtasks: {line}", file=sys.stderr, flush=True)

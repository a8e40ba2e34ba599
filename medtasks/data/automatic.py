"""Data that a run needs are prepared by one process, once the user has agreed to the download.

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
from medtasks.core.text import first_names, printable
from medtasks.data.consent import can_ask, is_agreed
from medtasks.data.hub import hub_address, offline_switch
from medtasks.data.hub_listing import UNKNOWN_SIZE, stated_size
from medtasks.data.missing_data import (
    MissingData,
    PlannedDownload,
    files_to_fetch,
    missing_data,
    planned_downloads,
    require_space,
)
from medtasks.data.package_release import prepare_package
from medtasks.data.preparation_report import preparation_lines
from medtasks.data.prepared import Prepared, data_root

FIRST_PROCESS_WAIT = 600.0
"""Seconds that the other processes of a command wait for the first one to begin."""
_PAUSE = 0.5
"""Seconds between two looks at what the first process does."""


def provide_data(benchmarks: Sequence[str]) -> None:
    """Prepare those benchmarks that are not prepared, if the user agrees to the download.

    One process prepares them; the others report that they wait for it.

    Raises:
        NotPreparedError: data are missing, and may not or cannot be prepared automatically.
        DamagedDataError: prepared data cannot be read.
        MachineError: the disk is full, or this machine lacks something else.
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
    switch = _forbidding_switch(missing)
    if switch is not None:
        raise NotPreparedError(f"{first.sentence}; {switch} is set, so nothing is downloaded")
    if not can_ask():
        names = first_names(entry.name for entry in missing)
        raise NotPreparedError(
            f"{first.sentence}; or set MEDTASKS_DOWNLOAD=yes, and the run downloads and prepares "
            f"{names} itself ({_licences(missing)})"
        )


def _forbidding_switch(missing: Sequence[MissingData]) -> str | None:
    """The variable that forbids a download that the data need; None if none does."""
    needs_hub = any(entry.preparation.files for entry in missing)
    return offline_switch() if needs_hub else None


def _licences(missing: Sequence[MissingData]) -> str:
    """The licences of the data, each once."""
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
    """The path that processes lock while they prepare data automatically."""
    return data_root().resolve() / "automatic"


def _report_holder(holder: str) -> None:
    _print(f"waiting for {holder}, which prepares data in {data_root()}")


def _wait_for_first_process(benchmarks: Sequence[str]) -> None:
    """Wait until the first process of the command has asked the user and prepared the data.

    Raises:
        NotPreparedError: it ended without preparing them, or does not begin.
    """
    lock = _lock()
    _print("waiting for the first process of the command to ask about missing data")
    has_begun = False
    deadline = time.monotonic() + FIRST_PROCESS_WAIT
    while True:
        # in this order: whoever releases the lock has prepared the data before
        is_busy = is_held(lock)
        missing = missing_data(benchmarks)
        if not missing:
            return
        if is_busy and not has_begun:
            has_begun = True
            _print("the first process of the command is asking, or prepares the data")
        has_ended = has_begun and not is_busy
        is_overdue = not has_begun and time.monotonic() > deadline
        if has_ended or is_overdue:
            raise NotPreparedError(missing[0].sentence)
        time.sleep(_PAUSE)


def _prepare(missing: Sequence[MissingData], consent: Consent) -> None:
    """Prepare the missing data in order, after asking the user unless the answer is known."""
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
    """The downloads, as the hub lists their files now.

    If the user has agreed but the hub may not or cannot be reached, a note is printed and the list
    is empty: the hub's cache on this machine may have all files.

    Raises:
        NotPreparedError: the hub cannot be reached, and the user would have to be asked.
    """
    names = first_names(entry.name for entry in missing)
    switch = _forbidding_switch(missing)
    if switch is not None:
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
    """The question to the user, with benchmarks, sizes, licences and directories."""
    from huggingface_hub import constants

    lines = ["medtasks: the data of these benchmarks are not prepared yet:"]
    for download in planned:
        lines.append(f"  {printable(str(download))}")
    to_fetch = files_to_fetch(planned)
    if not to_fetch:
        lines.append(f"Prepare them in {data_root()}? Nothing has to be downloaded.")
        return "\n".join(lines)
    is_limit = any(download.missing.preparation.is_limit for download in planned)
    size = stated_size(to_fetch, is_limit=is_limit)
    if size == UNKNOWN_SIZE:
        size = f"files of {size}"
    lines.append(
        f"Download {size} from {hub_address()} to {constants.HF_HUB_CACHE}, "
        f"and prepare the data in {data_root()}?"
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
    """Prepare a benchmark by its command, or else from the hub files that its package names."""
    command = entry.benchmark.data.command
    if command is not None:
        yield from command.run(progress, **entry.preparation.options)
        return
    with progress("verifying media") as bar:
        prepared = prepare_package(entry.benchmark, None, progress=bar)
    yield prepared


def _error_of(entry: MissingData, error: Exception) -> MedtasksError:
    """The error to raise if preparing failed, with its cause and how to continue."""
    fault = machine_fault(error)
    cause = first_line(fault or error).rstrip(".")
    message = (
        f"{entry.name} is missing in {data_root()} and could not be prepared: {cause} (to "
        f"continue, repeat the command, or run: {entry.benchmark.data.prepare})"
    )
    return NotPreparedError(message) if fault is None else MachineError(message)


def _print(line: str) -> None:
    print(f"medtasks: {line}", file=sys.stderr, flush=True)

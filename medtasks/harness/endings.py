"""How the runs of a command end: the text after the harness's own tables, and the exit code."""

from __future__ import annotations

import atexit
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.core.process_end import end_process
from medtasks.core.settings import current_settings


@dataclass(frozen=True)
class RunEnding:
    """The end of one run: its scores as ``text``, and whether it counts as ``failed``.

    ``problem`` is a sentence about requests without a response, empty if there are none.
    """

    text: str
    problem: str
    failed: bool


_ENDINGS: list[RunEnding] = []
"""Of the runs of this command, which may evaluate several models."""


def end_run(ending: RunEnding, *, in_command: bool) -> None:
    """Print how a run ended: now, or in a command after the harness's own tables."""
    _ENDINGS.append(ending)
    if not in_command:
        _show_endings()


def ending_of(
    text: str, asked: int, reasons: Counter[str], kept: Path, lm: Any, *, problems: bool
) -> RunEnding:
    """The ending of a run of ``asked`` requests, some without a response for these ``reasons``.

    The last line names the most frequent reason and, if ``lm`` calls a server, its address. The run
    counts as failed if it has other ``problems``, or if a larger share of the requests failed than
    ``MEDTASKS_MAX_FAILED`` allows.
    """
    failed = reasons.total()
    if not failed:
        return RunEnding(text, "", problems)
    [(reason, _)] = reasons.most_common(1)
    address = _address_of(lm)
    server = f"server {address}: " if address else ""
    problem = (
        f"medtasks: {failed:,} of {asked:,} requests have no response and are not scored "
        f"({server}{reason.rstrip('.')}). Run the same command again to send only these ({kept})."
    )
    limit = current_settings().max_failed
    too_many = failed > limit * asked
    if too_many:
        problem += (
            f" More than {100 * limit:g} % failed (MEDTASKS_MAX_FAILED), "
            "so the run counts as failed."
        )
    return RunEnding(text, problem, problems or too_many)


def _address_of(lm: Any) -> str:
    """The address of the server that a back-end calls; empty if none is known."""
    client = getattr(lm, "client", None)
    return str(getattr(lm, "base_url", None) or getattr(client, "base_url", None) or "")


def _show_endings() -> bool:
    """Print the endings so far; return whether one of these runs counts as failed."""
    has_failed = False
    while _ENDINGS:
        ending = _ENDINGS.pop(0)
        print(ending.text, flush=True)
        if ending.problem:
            print(ending.problem, file=sys.stderr, flush=True)
        has_failed = has_failed or ending.failed
    return has_failed


@atexit.register
def _end_command() -> None:
    """Print the endings once the harness has printed its tables and written its files.

    Its command exits with code 0 whatever happened to the requests, and Python ignores exceptions
    and exit codes of exit functions.
    """
    if _show_endings():
        end_process(1)

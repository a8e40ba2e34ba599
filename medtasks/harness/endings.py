"""How the runs of a command end: what is printed after the harness's own tables, and the exit
code.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.core.settings import current_settings


@dataclass(frozen=True)
class Ending:
    """The end of one run: its scores as ``text``, the ``problem`` of requests without a response,
    if there are any, and whether the run counts as ``failed``.
    """

    text: str
    problem: str
    failed: bool


_ENDINGS: list[Ending] = []
"""Of the runs of this command, which may evaluate several models."""


def end_run(ending: Ending, *, in_command: bool) -> None:
    """Print how a run ended: in a command when the process ends, after the harness's own tables,
    otherwise now."""
    _ENDINGS.append(ending)
    if not in_command:
        _show_endings()


def ending_of(
    text: str, asked: int, reasons: Counter[str], kept: Path, lm: Any, *, problems: bool
) -> Ending:
    """The ending of a run of ``asked`` requests, some without a response for these ``reasons``.

    The last line names the most frequent reason and, if ``lm`` calls a server, its address. The run
    counts as failed if it has other ``problems``, or if a larger share of the requests failed than
    ``MEDTASKS_MAX_FAILED`` allows.
    """
    failed, limit = reasons.total(), current_settings().max_failed
    too_many = failed > limit * asked
    if not failed:
        return Ending(text, "", problems)
    ((reason, _),) = reasons.most_common(1)
    address = _address_of(lm)
    server = f"server {address}: " if address else ""
    share = f"More than {100 * limit:g} % failed (MEDTASKS_MAX_FAILED)"
    exceeded = f" {share}, so the run counts as failed."
    problem = (
        f"medtasks: {failed:,} of {asked:,} requests have no response and are not scored "
        f"({server}{reason.rstrip('.')}). Run the same command again to send only these ({kept}).{exceeded * too_many}"
    )
    return Ending(text, problem, problems or too_many)


def _address_of(lm: Any) -> str:
    """The address of the server that a back-end calls; empty if none is known."""
    client = getattr(lm, "client", None)
    return str(getattr(lm, "base_url", None) or getattr(client, "base_url", None) or "")


def _show_endings() -> bool:
    """Print the endings so far; whether one of these runs counts as failed."""
    endings = [_ENDINGS.pop(0) for _ in list(_ENDINGS)]
    for ending in endings:
        print(ending.text, flush=True)
        if ending.problem:
            print(ending.problem, file=sys.stderr, flush=True)
    return any(ending.failed for ending in endings)


@atexit.register
def _end_command() -> None:
    """The harness has printed its tables and written its files."""
    if _show_endings():
        os._exit(1)

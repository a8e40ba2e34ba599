"""The border between our functions and the harness's command line.

The harness answers any exception with a traceback, several retries and exit code 0, so a script would take a
failed run for a finished one; at the border every :class:`MedtasksError` becomes one sentence and exit code 1.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from medtasks.errors import MedtasksError

__all__ = ["at_border"]

P = ParamSpec("P")
R = TypeVar("R")


def at_border(function: Callable[P, R]) -> Callable[P, R]:
    """Let ``function`` end the process with one sentence where it raises :class:`MedtasksError`.

    Raises:
        SystemExit: with code 1, after ``medtasks: <message>`` went to standard error; the cause stays attached.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except MedtasksError as error:
            print(f"medtasks: {error}", file=sys.stderr, flush=True)
            raise SystemExit(1) from error

    return guarded

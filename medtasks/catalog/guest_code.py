"""Errors in another package's code: where they were raised, and messages that say so."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path
from typing import Any

from medtasks.catalog.contents import task_packages
from medtasks.catalog.task_package import OURS
from medtasks.core.errors import GuestCodeError
from medtasks.core.findings import Place
from medtasks.core.schema import shown


def raised_at(error: BaseException) -> Place | None:
    """The last frame of ``error`` in another package's code; None if there is none."""
    if isinstance(error, GuestCodeError) and error.place is not None:
        return error.place
    if isinstance(error, SyntaxError) and error.filename:
        return Place(Path(error.filename), error.lineno or 1)
    folders = [package.tasks.parent for package in task_packages() if not package.ours]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(folder) for folder in folders):
            return Place(Path(frame.filename), frame.lineno or 1)
    return None


def raised_in(error: BaseException) -> str:
    """Where ``error`` was raised, in parentheses: :func:`raised_at`, or else the last frame."""
    place = raised_at(error)
    if place is not None:
        return f"({place})"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "(place unknown)"
    last = frames[-1]
    return f"({Place(Path(last.filename), last.lineno or 1)})"


def place_of(part: Any) -> Place | None:
    """Where a class, a function, or the class of an instance is defined; None if unknown or
    ours.
    """
    defined = part
    if not (inspect.isclass(part) or inspect.isfunction(part)):
        defined = type(part)
    if defined.__module__.partition(".")[0] == OURS:
        return None
    try:
        file = inspect.getsourcefile(defined)
        _, line = inspect.getsourcelines(defined)
    except (OSError, TypeError):
        return None
    return Place(Path(str(file)), line)


def wrong_return(what: str, function: Any, returned: object, expected: str) -> GuestCodeError:
    """The error that a function did not return what is ``expected``, with its file and line."""
    place = place_of(function)
    at = f" ({place})" if place else ""
    return GuestCodeError(
        f"{what}{at} returned {shown(returned)}, expected {expected}; fix it.", place
    )

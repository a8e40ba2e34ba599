"""The one exception family that reaches a medtasks user.

Every message is one sentence that names the file, the field, what was found, what was expected and the fix,
so that a command-line user never needs a traceback.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "HarnessError",
    "MediaError",
    "MedtasksError",
    "NoRowsError",
    "NotPreparedError",
    "UsageError",
    "first_line",
]


class MedtasksError(Exception):
    """Base of all errors that medtasks raises on purpose; the message is written for the user."""


class UsageError(MedtasksError):
    """The command or call cannot work as given (unknown task, option out of range); exit code 2."""


class DataError(MedtasksError):
    """Source data break the format that a protocol card describes (file, line and field are named)."""


class NoRowsError(DataError):
    """The prepared data hold no row for a task: a release may leave out what a task asks for."""


class MediaError(DataError):
    """An image or video is missing, truncated or cannot be decoded."""


class NotPreparedError(MedtasksError):
    """A task was asked for before ``medtasks prepare`` made its data; the message holds the command."""


class HarnessError(MedtasksError):
    """The installed lmms-eval is not one that this medtasks can work with."""


def first_line(error: BaseException) -> str:
    """What went wrong, on one line: our own message, or the kind of another error and its first line."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, MedtasksError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

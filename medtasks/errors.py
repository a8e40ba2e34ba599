"""The one exception family that reaches users.

Every message is one sentence that names the file, the field, what was found, what was expected and the fix,
so that command-line users never need a traceback.
"""

from __future__ import annotations


class MedtasksError(Exception):
    """Base of all errors that medtasks raises on purpose; the message is written for the user."""


class UsageError(MedtasksError):
    """The command or call cannot work as given (unknown task, option out of range); exit code 2."""


class DataError(MedtasksError):
    """Source data break their format; names file, line and field."""


class NoRowsError(DataError):
    """The prepared data have no row for a task: a release may leave out what a task needs."""


class MediaError(DataError):
    """An image or video is missing, truncated or cannot be decoded."""


class NotPreparedError(MedtasksError):
    """A task was run before ``medtasks prepare`` made its data; the message has the command."""


class HarnessError(MedtasksError):
    """This medtasks does not work with the installed lmms-eval."""


def first_line(error: BaseException) -> str:
    """An error on one line: the message of ours, or the class and first line of any other."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, MedtasksError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

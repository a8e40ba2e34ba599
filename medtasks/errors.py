"""The one exception family that reaches a medtasks user.

Every message is one sentence that names the file, the field, what was found, what was expected and the fix,
so that a command-line user never needs a traceback.
"""

from __future__ import annotations

__all__ = ["DataError", "HarnessError", "MediaError", "MedtasksError", "NotPreparedError", "UsageError"]


class MedtasksError(Exception):
    """Base of all errors that medtasks raises on purpose; the message is written for the user."""


class UsageError(MedtasksError):
    """The command or call cannot work as given (unknown task, option out of range); exit code 2."""


class DataError(MedtasksError):
    """Source data break the format that a protocol card describes (file, line and field are named)."""


class MediaError(DataError):
    """An image or video is missing, truncated or cannot be decoded."""


class NotPreparedError(MedtasksError):
    """A task was asked for before ``medtasks prepare`` made its data; the message holds the command."""


class HarnessError(MedtasksError):
    """The installed lmms-eval is not one that this medtasks can work with."""

"""The one exception family that reaches users.

Every message is one sentence that names the file, the field, what was found, what was expected and the fix,
so that command-line users never need a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medtasks.core.findings import Place


class MedtasksError(Exception):
    """Base class of all errors that medtasks raises deliberately; the message is written for the user."""


class UsageError(MedtasksError):
    """The command or call cannot work as given (unknown task, option out of range); exit code 2."""


class DataError(MedtasksError):
    """Source data violate their format; the message names file, line and field."""


class NoRowsError(DataError):
    """The prepared data have no rows for a task, for example because the release lacks them."""


class MediaError(DataError):
    """An image or video is missing, truncated or cannot be decoded."""


class NotPreparedError(MedtasksError):
    """A task's data are not prepared; the message has the ``medtasks prepare`` command."""


class GuestCodeError(MedtasksError):
    """A function of another package returned something unusable; ``place`` is where it is, if known."""

    def __init__(self, message: str, place: Place | None) -> None:
        super().__init__(message)
        self.place = place


class HarnessError(MedtasksError):
    """The installed lmms-eval does not work with this version of medtasks."""


@contextmanager
def reading(path: Path, fix: str, kind: type[MedtasksError] = DataError) -> Iterator[None]:
    """Report an `OSError` of the block as an error of this ``kind``: the file cannot be read, and the ``fix``."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot be read ({error.strerror}); {fix}.") from error


def first_line(error: BaseException) -> str:
    """An error on one line: the first line of its message, after the class name unless it is ours."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, MedtasksError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""Writing a rater's file: each rating is on disk before the next answer is shown."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from medtasks.core.errors import DataError
from medtasks.core.files import canonical_json
from medtasks.core.locks import held
from medtasks.core.replacement import replaced
from medtasks.judge.rating_file import RatingFile, read_rating_file
from medtasks.judge.rating_records import AnswerKey, Rating, RatingPlan


class RatingWriter:
    """Appends to a rater's file, which :func:`open_for_rating` opened.

    ``plan`` is the last plan of the file and ``ratings`` the last rating of each answer;
    ``was_torn`` is whether a cut-off last line was removed.
    """

    def __init__(self, file: RatingFile) -> None:
        self.was_torn = file.is_torn
        self.path = file.path
        self.plan = file.plan
        self.ratings: dict[AnswerKey, Rating] = dict(file.ratings)
        self._writing = threading.Lock()

    def add(self, rating: Rating) -> None:
        """Append a rating, which replaces an earlier one of the same answer.

        One that says the same as the earlier one is not repeated: a form may be sent twice.

        Raises:
            DataError: it cannot be written; the file is as it was.
        """
        with self._writing:
            earlier = self.ratings.get(rating.key)
            if earlier is None or _statement(earlier) != _statement(rating):
                self._append(rating)
                self.ratings[rating.key] = rating

    def extend(self, plan: RatingPlan) -> None:
        """Append a plan that draws further answers; earlier ratings stay.

        Raises:
            DataError: it cannot be written; the file is as it was.
        """
        with self._writing:
            self._append(plan)
            self.plan = plan

    def _append(self, line: Rating | RatingPlan) -> None:
        """Append a line and wait until it is on disk; the file is as it was if that fails."""
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                _append_whole(handle, _encoded(line))
            finally:
                os.close(handle)
        except OSError as error:
            raise DataError(
                f"{self.path}: cannot be written ({error.strerror}); free space or give access to "
                "it, and send the rating again."
            ) from error


@contextmanager
def open_for_rating(path: Path, new_plan: Callable[[], RatingPlan]) -> Iterator[RatingWriter]:
    """The rater's file at ``path``, locked against other processes for the block.

    A file that does not exist begins with ``new_plan``; of one that exists, a cut-off last line is
    removed.

    Raises:
        LockedError: another process has the file open.
        DataError: it cannot be read or written.
    """
    _make_folder(path.parent)
    with held(path, "rated"):
        if not path.exists():
            _create(path, new_plan())
        file = read_rating_file(path)
        writer = RatingWriter(file)
        if writer.was_torn:
            os.truncate(path, file.size)
        yield writer


def _append_whole(handle: int, content: bytes) -> None:
    """Append bytes to an open file and flush them to disk, or restore its size and raise
    `OSError`.
    """
    size = os.fstat(handle).st_size
    try:
        written = os.write(handle, content)
        if written < len(content):
            raise OSError(0, "only a part of the line was written")
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _make_folder(folder: Path) -> None:
    """Make the folder of a file, with those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be made ({error.strerror}); give access to the directory above it, "
            "or another one with --ratings."
        ) from error


def _create(path: Path, plan: RatingPlan) -> None:
    """Write a file with a plan alone: whole or not at all."""
    try:
        with replaced(path) as partial, partial.open("wb") as stream:
            stream.write(_encoded(plan))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror}); give access to its directory, or "
            "another one with --ratings."
        ) from error


def _encoded(line: Rating | RatingPlan) -> bytes:
    """A line of the file, with its end."""
    return canonical_json(line.model_dump(mode="json")).encode() + b"\n"


def _statement(rating: Rating) -> tuple[object, ...]:
    """What a rating says, without when and how long."""
    return rating.scores, rating.cannot_tell, rating.comment

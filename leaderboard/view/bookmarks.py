"""Bookmarks: samples that a reader marked with a note, in a file beside the result directories."""

from __future__ import annotations

import threading
from pathlib import Path

from pydantic import ValidationError

from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, read_lines
from medtasks.core.replacement import replaced
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.strict_json import model_from_json

_WRITING = threading.Lock()


class Bookmark(Frozen):
    """A line of the file of bookmarks; ``run`` is the name of the result directory."""

    run: str
    task: str
    sample_id: str
    note: str


def read_bookmarks(folder: Path) -> list[Bookmark]:
    """The bookmarks in the result directory ``folder``, and in those beside it."""
    path = _file_beside(folder)
    bookmarks = []
    with reading(path, "restore or remove it"):
        lines = read_lines(path) if path.exists() else ()
        for number, line in enumerate(lines, 1):
            try:
                bookmarks.append(model_from_json(Bookmark, line))
            except ValidationError as error:
                problem = first_problem(error, Bookmark)
                raise DataError(
                    f"{path}, line {number}: {problem}; correct or remove the line."
                ) from error
    return bookmarks


def write_bookmark(folder: Path, task: str, sample_id: str, note: str | None) -> None:
    """Bookmark a sample of the result directory ``folder`` with a note, which replaces an earlier
    one; None removes the bookmark.
    """
    path = _file_beside(folder)
    sample = (folder.name, task, sample_id)
    with _WRITING:
        bookmarks = []
        for bookmark in read_bookmarks(folder):
            if (bookmark.run, bookmark.task, bookmark.sample_id) != sample:
                bookmarks.append(bookmark)
        if note is not None:
            new = Bookmark(run=folder.name, task=task, sample_id=sample_id, note=note)
            bookmarks.append(new)
        lines = [canonical_json(dict(bookmark)) + "\n" for bookmark in bookmarks]
        try:
            with replaced(path) as partial:
                partial.write_text("".join(lines), encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{path}: cannot be written ({error.strerror}); give access to its directory."
            ) from error


def _file_beside(folder: Path) -> Path:
    return folder.parent / "bookmarks.jsonl"

"""Bookmarks: samples that a reader marked, each with a note, in a file beside the result directories."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import canonical_json, read_lines, replaced
from medtasks.core.schema import Frozen, first_problem

from .library import Run

FILE = "bookmarks.jsonl"
LONGEST = 4_000
"""Characters of a note."""
_WRITING = threading.Lock()

Notes = Mapping[tuple[str, str], str]
"""The notes on samples of one run, by task and sample id."""


class Bookmark(Frozen):
    """A line of the file; ``run`` is the name of the result directory."""

    run: str
    task: str
    sample_id: str
    note: str


def notes_of(run: Run) -> Notes:
    """The notes on the run's bookmarked samples.

    Raises:
        DataError: the file cannot be read; names the line.
    """
    kept = _read(run.folder.parent / FILE)
    return {(one.task, one.sample_id): one.note for one in kept if one.run == run.folder.name}


def bookmark(run: Run, task: str, sample_id: str, note: str | None) -> None:
    """Bookmark a sample with a note, which replaces an earlier one; None removes the bookmark.

    Raises:
        UsageError: the note is too long.
        DataError: the file cannot be read or written.
    """
    if note is not None and len(note) > LONGEST:
        raise UsageError(f"the note has {len(note):,} characters, expected at most {LONGEST:,}; shorten it.")
    path, name = run.folder.parent / FILE, run.folder.name
    with _WRITING:
        kept = [one for one in _read(path) if (one.run, one.task, one.sample_id) != (name, task, sample_id)]
        if note is not None:
            kept.append(Bookmark(run=name, task=task, sample_id=sample_id, note=note))
        try:
            with replaced(path) as partial:
                partial.write_text("".join(f"{canonical_json(dict(one))}\n" for one in kept), encoding="utf-8")
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); give access to its directory.") from error


def _read(path: Path) -> list[Bookmark]:
    found = []
    with reading(path, "restore or remove it"):
        for number, line in enumerate(read_lines(path) if path.exists() else (), 1):
            try:
                found.append(Bookmark.model_validate_json(line))
            except ValidationError as error:
                problem = first_problem(error, Bookmark)
                raise DataError(f"{path}, line {number}: {problem}; correct or remove the line.") from error
    return found

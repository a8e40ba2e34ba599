"""A JSONL file of recorded responses, checked line by line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from medtasks.errors import DataError

__all__ = ["Recording", "read_recording"]

Key = tuple[str | None, str]


@dataclass(frozen=True)
class Recording:
    """Responses by (task or None, sample id); ``repeats`` counts rows that only repeat an earlier one."""

    responses: Mapping[Key, str]
    rows: int
    repeats: int
    sha256: str

    def find(self, task: str, sample_id: str) -> str | None:
        """The response for a sample: the row that names ``task`` first, then the one that names none."""
        specific = self.responses.get((task, sample_id))
        return self.responses.get((None, sample_id)) if specific is None else specific

    def count_outside(self, documents: Mapping[str, Set[str]]) -> int:
        """How many responses belong to no document; ``documents`` are sample ids by task."""
        everywhere: set[str] = set().union(*documents.values())
        return sum(
            sample_id not in (everywhere if task is None else documents.get(task, ()))
            for task, sample_id in self.responses
        )


def read_recording(path: Path) -> Recording:
    """Read ``path``: UTF-8, one JSON object per line with ``sample_id``, ``response`` and perhaps ``task``.

    Other fields are left alone and blank lines are skipped.

    Raises
    ------
    DataError
        Naming file and line: a file that cannot be read or has no rows, a line that is no such object, two
        different responses for one sample.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the predictions cannot be read ({error.strerror}).") from error
    responses: dict[Key, str] = {}
    first_line: dict[Key, int] = {}
    rows = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        key, response = _read_line(f"{path}, line {number}", line)
        rows += 1
        if responses.setdefault(key, response) != response:
            earlier = first_line[key]
            raise DataError(
                f"{path}, line {number}: another response for sample {key[1]!r} than in line {earlier}; "
                "keep one of them, or name the task in each."
            )
        first_line.setdefault(key, number)
    if not rows:
        raise DataError(f"{path}: the file has no rows, expected one JSON object per line.")
    return Recording(responses, rows, rows - len(responses), hashlib.sha256(content).hexdigest())


def _read_line(where: str, line: bytes) -> tuple[Key, str]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start}).") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not a JSON object ({error}).") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: a JSON {type(row).__name__}, expected an object.")
    for field in ("sample_id", "response"):
        if not _is_text(row.get(field)):
            found = f"of type {type(row[field]).__name__}" if field in row else "missing"
            raise DataError(f"{where}: field {field!r} is {found}, expected text of whole characters.")
    task = row.get("task")
    if task is not None and not _is_text(task):
        raise DataError(f"{where}: field 'task' is no text, expected the name of a task.")
    return (task, row["sample_id"]), row["response"]


def _is_text(value: object) -> bool:
    """Whether ``value`` is a string that can be written as UTF-8; JSON escapes can hold half a character."""
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

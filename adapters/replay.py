"""``medtasks_replay``: answers read from a file of existing predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from loguru import logger

from medtasks.catalog.records import ReleaseRow, is_text, parse_row
from medtasks.core.errors import DataError, UsageError
from medtasks.core.exits import exit_with_sentence
from medtasks.core.schema import expects
from medtasks.data.sources import read_jsonl
from medtasks.runs.replies import Reply

from ._base import Arguments, ChatRequest, MedtasksAdapter, light_rows


class ReplayArguments(Arguments):
    """Arguments of ``medtasks_replay``."""

    path: str
    """JSONL file, one object per line: ``sample_id``, ``response`` and, if a sample id occurs in several tasks,
    ``task``; optionally ``finish_reason``: ``stop``, or ``length`` for a response that the token limit cut off. A row
    with the task takes precedence over one without. All repeats of a sample get the same response."""

    missing: Literal["error", "failed"] = "error"
    """A requested sample without a row ends the run (``error``) or is counted as not answered (``failed``)."""


class MedtasksReplay(MedtasksAdapter):
    """Answers each sample with its response in a JSONL file (:class:`ReplayArguments`).

    Errors end the process with one sentence and exit code 1.
    """

    answers_all_rounds = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        given = ReplayArguments.read(arguments)
        self._missing = given.missing
        self._path = Path(given.path).expanduser()
        self._responses, self._rows = _read_responses(self._path)
        self._sha256 = hashlib.sha256(self._path.read_bytes()).hexdigest()
        self._unmatched: int | None = None
        self.join_replicas("cpu")

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable.

        ``unmatched`` are rows of the file that belong to no document of the run (None before the first request).
        """
        return {
            "model": "medtasks_replay",
            "file": self._path.name,
            "sha256": self._sha256,
            "missing_policy": self._missing,
            "rows": self._rows,
            "identical_repeats": self._rows - len(self._responses),
            "unmatched": self._unmatched,
        }

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """Answer ``requests`` in their order, after looking up all of them.

        Raises:
            UsageError: a sample has no row and ``missing=error``.
        """
        if self._unmatched is None:
            self._unmatched = self._count_unmatched(requests)
        known = self._responses
        rows = [known.get((one.task, one.sample_id), known.get((None, one.sample_id))) for one in requests]
        lacking = [request for request, row in zip(requests, rows, strict=True) if row is None]
        if lacking and self._missing == "error":
            raise UsageError(
                f"{self._path}: no response for {len(lacking)} of {len(requests)} requested samples, first "
                f"{lacking[0].sample_id!r} of task {lacking[0].task}; add the rows, or give missing=failed."
            )
        if lacking:
            logger.warning(f"medtasks_replay: {len(lacking)} of {len(requests)} samples have no row")
        reason = "the file of predictions has no row for it"
        return [Reply.failure(reason) if row is None else Reply(row.response, finish=row.finish_reason) for row in rows]

    def _count_unmatched(self, read: Iterable[ChatRequest]) -> int:
        """Rows that belong to no document of the run's tasks; the same number on every replica."""
        documents: dict[str | None, set[str]] = {}
        for task, split in {(request.task, request.split) for request in read}:
            rows = light_rows(self.task_dict[task][split], ("sample_id",))
            documents.setdefault(task, set()).update(str(row.get("sample_id")) for row in rows or ())
        documents[None] = set().union(*documents.values())
        unmatched = sum(sample_id not in documents.get(task, ()) for task, sample_id in self._responses)
        if unmatched and self.rank == 0:
            logger.warning(f"medtasks_replay: {unmatched} rows of {self._path.name} match no document of the run")
        return unmatched


_Text = Annotated[str, expects("a string of valid Unicode", is_text)]


class _Row(ReleaseRow):
    """One line of the file; other fields are ignored."""

    sample_id: _Text
    response: _Text
    task: _Text | None = None
    finish_reason: Literal["stop", "length"] | None = None


def _read_responses(path: Path) -> tuple[dict[tuple[str | None, str], _Row], int]:
    """Rows by (task or None, sample id), and their number."""
    responses: dict[tuple[str | None, str], _Row] = {}
    first_line: dict[tuple[str | None, str], int] = {}
    rows = list(read_jsonl(path))
    for source in rows:
        row = parse_row(_Row, source.row, source.where)
        key = (row.task, row.sample_id)
        earlier = first_line.setdefault(key, source.where.line)
        if responses.setdefault(key, row).response != row.response:
            raise DataError(
                f"{source.where}: another response for sample {row.sample_id!r} than in line {earlier}; "
                "keep one of them, or name the task in each."
            )
    return responses, len(rows)

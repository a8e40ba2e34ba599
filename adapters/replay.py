"""``medtasks_replay``: answers read from a file of existing predictions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from loguru import logger

from medtasks.border import at_border
from medtasks.errors import UsageError

from ._base import MedtasksAdapter, Response, refuse_unknown
from ._recording import read_recording
from ._requests import ChatRequest, light_rows, read_requests

__all__ = ["MedtasksReplay"]

_NO_ROW = "the file of predictions has no row for it"


class MedtasksReplay(MedtasksAdapter):
    """Answers each sample with the response that a JSONL file has for it.

    Arguments
    ---------
    path
        One object per line: ``sample_id``, ``response`` and, where a sample id occurs in several tasks,
        ``task``. A row that names the task goes before one that does not. All repeats of a sample get the
        same response.
    missing
        What happens to a requested sample without a row: ``error`` (the default) ends the run, ``failed`` counts it as
        not answered.

    Errors end the process with one sentence and exit code 1.
    """

    answers_all_rounds = True

    @at_border
    def __init__(
        self,
        path: object = None,
        missing: str = "error",
        batch_size: object = None,  # noqa: ARG002  (these three come from the harness and have no meaning here)
        max_batch_size: object = None,  # noqa: ARG002
        device: object = None,  # noqa: ARG002
        **unknown: Any,
    ) -> None:
        super().__init__()
        refuse_unknown("medtasks_replay", ("path", "missing"), unknown)
        if path is None:
            raise UsageError("medtasks_replay: path is missing, expected a JSONL file of predictions.")
        if missing not in ("error", "failed"):
            raise UsageError(f"missing is {missing!r}, expected error or failed.")
        self._missing = missing
        self._path = Path(str(path)).expanduser()
        self._recording = read_recording(self._path)
        self._counts = {"answered": 0, "missing": 0}
        self._unmatched: int | None = None
        self.join_replicas("cpu")

    def describe(self) -> dict[str, Any]:
        """What produced the answers, as JSON.

        ``answered`` and ``missing`` count this replica's requests; ``unmatched`` are rows of the file that
        belong to no document of the tasks in the run (None before the first request).
        """
        return {
            "model": "medtasks_replay",
            "file": self._path.name,
            "sha256": self._recording.sha256,
            "missing_policy": self._missing,
            "rows": self._recording.rows,
            "identical_repeats": self._recording.repeats,
            "unmatched": self._unmatched,
            **self._counts,
        }

    def generate_until(self, requests: list[Any]) -> list[Response]:
        """Answer ``requests`` in their order, after all of them were looked up.

        Raises
        ------
        UsageError
            Where a sample has no row and ``missing=error``.
        """
        read = read_requests(requests, self.task_dict)
        if self._unmatched is None:
            self._unmatched = self._count_unmatched(read)
        responses = [None if r.padding else self._recording.find(r.task, r.sample_id) for r in read]
        wanted = [r for r in read if not r.padding]
        lacking = [r for r, found in zip(read, responses, strict=True) if found is None and not r.padding]
        if lacking and self._missing == "error":
            raise UsageError(
                f"{self._path}: no response for {len(lacking)} of {len(wanted)} requested samples, first "
                f"{lacking[0].sample_id!r} of task {lacking[0].task}; add the rows, or give missing=failed."
            )
        if lacking:
            logger.warning(f"medtasks_replay: {len(lacking)} of {len(wanted)} samples have no row")
        self._counts["missing"] += len(lacking)
        self._counts["answered"] += len(wanted) - len(lacking)
        return [Response(found or "", failed=_NO_ROW if found is None else None) for found in responses]

    def generate_until_multi_round(self, requests: list[Any]) -> list[Response]:
        """A recorded response holds all rounds of its sample."""
        return self.generate_until(requests)

    def _count_unmatched(self, read: Iterable[ChatRequest]) -> int:
        """Rows that belong to no document of the run's tasks; the same number on every replica."""
        documents: dict[str, set[str]] = {}
        for task, split in {(request.task, request.split) for request in read}:
            rows = light_rows(self.task_dict[task][split], ("sample_id",))
            ids = (row.get("sample_id") for row in rows or ())
            documents.setdefault(task, set()).update(map(str, ids))
        unmatched = self._recording.count_outside(documents)
        if unmatched and self.rank == 0:
            logger.warning(f"medtasks_replay: {unmatched} rows of {self._path.name} match no document of the run")
        return unmatched

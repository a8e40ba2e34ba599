"""``medtasks_replay``: answers read from a file of existing predictions."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

from loguru import logger

from medtasks.catalog.records import wrong
from medtasks.core.errors import DataError, UsageError, exit_with_sentence
from medtasks.core.files import file_sha256
from medtasks.data.sources import read_jsonl
from medtasks.importers.layouts import predictions_in_rows
from medtasks.importers.predictions import Prediction
from medtasks.runs.replies import Reply

from ._base import Arguments, ChatRequest, MedtasksAdapter, read_documents


class ReplayArguments(Arguments):
    """Arguments of ``medtasks_replay``. ``path`` is a JSONL file with ``sample_id``, ``response``
    and, if a sample id occurs in several tasks, ``task``; optionally ``finish_reason``: ``stop``,
    ``length`` for a response that the token limit cut off, ``content_filter`` for one that was
    withheld. A response of null has failed. A row with the task takes precedence. All repeats of a
    sample get the same response.

    ``missing`` decides whether a sample without a row ends the run or counts as not answered.
    ``prompts`` states what the responses were made with: prompts that nobody knows here, or those
    of our tasks.
    """

    path: str
    missing: Literal["error", "failed"] = "error"
    prompts: Literal["unknown", "ours"] = "unknown"


class MedtasksReplay(MedtasksAdapter):
    """Answers each sample with its response in a JSONL file (:class:`ReplayArguments`). Errors end
    the process with one sentence and exit code 1.
    """

    answers_all_rounds = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        given = ReplayArguments.read(arguments)
        self._missing = given.missing
        self.has_unknown_prompts = given.prompts == "unknown"
        self._path = Path(given.path).expanduser()
        self._rows: dict[tuple[str | None, str], Prediction] = {}
        rows = _predictions(self._path)
        for row in rows:
            sample_id = row.keys["sample_id"]
            earlier = self._rows.setdefault((row.keys.get("task"), sample_id), row)
            if earlier.answer != row.answer:
                raise DataError(
                    f"{row.where}: another response for sample {sample_id!r} than in line {earlier.where.line}; keep "
                    "one of them, or name the task in each."
                )
        self._about: dict[str, Any] = {
            "model": "medtasks_replay",
            "file": self._path.name,
            "sha256": file_sha256(self._path),
            "missing_policy": given.missing,
            "prompts": given.prompts,
            "rows": len(rows),
            "identical_repeats": len(rows) - len(self._rows),
            "unmatched": None,
        }

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable. ``unmatched`` are rows of the file that
        belong to no document of the run (None before the first request).
        """
        return dict(self._about)

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """Answer ``requests`` in their order, after looking up all of them."""
        if (
            self._about["unmatched"] is None
        ):  # of all documents of the tasks, so the same number on every replica
            known: dict[str | None, set[str]] = defaultdict(set)
            for task, split in {(request.task, request.split) for request in requests}:
                documents = read_documents(self.task_dict[task][split], ("sample_id",))
                known[task].update(str(document.get("sample_id")) for document in documents)
            known[None] = set().union(*known.values())
            unmatched = sum(sample_id not in known.get(task, ()) for task, sample_id in self._rows)
            self._about["unmatched"] = unmatched
            if unmatched and self.rank == 0:
                logger.warning(
                    f"medtasks_replay: {unmatched} rows of {self._path.name} match no document of the run"
                )
        found = [
            self._rows.get((one.task, one.sample_id), self._rows.get((None, one.sample_id)))
            for one in requests
        ]
        lacking = [request for request, row in zip(requests, found, strict=True) if row is None]
        if lacking and self._missing == "error":
            raise UsageError(
                f"{self._path}: no response for {len(lacking)} of {len(requests)} requested samples, first "
                f"{lacking[0].sample_id!r} of task {lacking[0].task}; add the rows, or give missing=failed."
            )
        failed = Reply.failure("the file of predictions has no row for it")
        return [failed if row is None else row.reply for row in found]


def _predictions(path: Path) -> list[Prediction]:
    """The predictions in the file, each with a sample id."""
    predictions = predictions_in_rows(read_jsonl(path), {})
    for one in predictions:
        if "sample_id" not in one.keys:
            raise wrong(
                one.where,
                "sample_id",
                None,
                "the id of a sample; here, pictures and questions do not identify it",
            )
    return predictions

"""``medtasks_replay``: answers read from a file of existing predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
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

from ._base import MedtasksAdapter
from ._requests import ChatRequest, read_documents
from ._settings import Arguments


class ReplayArguments(Arguments):
    """Arguments of ``medtasks_replay``.

    ``path`` is a JSONL file with ``sample_id``, ``response`` and, if a sample id occurs in several
    tasks, ``task``; optionally ``finish_reason``: ``stop``, ``length`` for a response that the
    token limit cut off, ``content_filter`` for one that was withheld. A response of null has
    failed. A row with the task takes precedence. All repeats of a sample get the same response.

    ``missing`` decides whether a sample without a row ends the run or counts as not answered.
    ``prompts`` states the prompts of the responses: ``unknown``, or ``ours`` for those of our
    tasks.
    """

    path: str
    missing: Literal["error", "failed"] = "error"
    prompts: Literal["unknown", "ours"] = "unknown"


class MedtasksReplay(MedtasksAdapter):
    """Answers each sample with its response in a JSONL file (:class:`ReplayArguments`).

    Errors end the process with one sentence and exit code 1.
    """

    answers_all_rounds = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        """Read the predictions in the file that `ReplayArguments` name."""
        super().__init__()
        settings = ReplayArguments.read(arguments)
        self._missing = settings.missing
        self.has_unknown_prompts = settings.prompts == "unknown"
        self._path = Path(settings.path).expanduser()
        predictions = _predictions(self._path)
        self._predictions = _by_task_and_sample(predictions)
        self._facts: dict[str, Any] = {
            "model": "medtasks_replay",
            "file": self._path.name,
            "sha256": file_sha256(self._path),
            "missing_policy": settings.missing,
            "prompts": settings.prompts,
            "rows": len(predictions),
            "identical_repeats": len(predictions) - len(self._predictions),
            "unmatched": None,
        }

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable.

        ``unmatched`` are rows of the file that belong to no document of the run (None before the
        first request).
        """
        return dict(self._facts)

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """Answer ``requests`` in their order, after looking up all of them."""
        if self._facts["unmatched"] is None:
            self._count_unmatched(requests)
        predictions = [self._prediction(request) for request in requests]
        if self._missing == "error":
            self._refuse_missing(requests, predictions)
        failure = Reply.failure("the file of predictions has no row for it")
        replies: list[Reply] = []
        for prediction in predictions:
            replies.append(failure if prediction is None else prediction.reply)
        return replies

    def _prediction(self, request: ChatRequest) -> Prediction | None:
        """The row of a request; one that names the task takes precedence."""
        row_of_task = self._predictions.get((request.task, request.sample_id))
        if row_of_task is not None:
            return row_of_task
        return self._predictions.get((None, request.sample_id))

    def _refuse_missing(
        self, requests: list[ChatRequest], predictions: list[Prediction | None]
    ) -> None:
        """Refuse requests whose samples have no row, naming the first one."""
        missing: list[ChatRequest] = []
        for request, prediction in zip(requests, predictions, strict=True):
            if prediction is None:
                missing.append(request)
        if missing:
            raise UsageError(
                f"{self._path}: no response for {len(missing)} of {len(requests)} requested "
                f"samples, first {missing[0].sample_id!r} of task {missing[0].task}; add the rows, "
                "or give missing=failed."
            )

    def _count_unmatched(self, requests: list[ChatRequest]) -> None:
        """Count the rows that match no document.

        All documents of the tasks count, so that the number is the same on every replica.
        """
        sample_ids: dict[str | None, set[str]] = defaultdict(set)
        for task, split in {(request.task, request.split) for request in requests}:
            for document in read_documents(self.task_dict[task][split], ("sample_id",)):
                sample_id = str(document.get("sample_id"))
                sample_ids[task].add(sample_id)
                sample_ids[None].add(sample_id)
        unmatched = 0
        for named_task, predicted_id in self._predictions:
            if predicted_id not in sample_ids.get(named_task, ()):
                unmatched += 1
        self._facts["unmatched"] = unmatched
        if unmatched and self.rank == 0:
            logger.warning(
                f"medtasks_replay: {unmatched} rows of {self._path.name} match no document of the "
                "run"
            )


def _predictions(path: Path) -> list[Prediction]:
    """The predictions in the file, each with a sample id."""
    predictions = predictions_in_rows(read_jsonl(path), {})
    for prediction in predictions:
        if "sample_id" not in prediction.keys:
            raise wrong(
                prediction.where,
                "sample_id",
                None,
                "the id of a sample; here, pictures and questions do not identify it",
            )
    return predictions


def _by_task_and_sample(
    predictions: Sequence[Prediction],
) -> dict[tuple[str | None, str], Prediction]:
    """The predictions by task, None for a row that names none, and sample id.

    Raises:
        DataError: two rows have different responses for the same sample.
    """
    by_key: dict[tuple[str | None, str], Prediction] = {}
    for prediction in predictions:
        sample_id = prediction.keys["sample_id"]
        key = (prediction.keys.get("task"), sample_id)
        earlier = by_key.setdefault(key, prediction)
        if earlier.answer != prediction.answer:
            raise DataError(
                f"{prediction.where}: another response for sample {sample_id!r} than in line "
                f"{earlier.where.line}; keep one of them, or name the task in each."
            )
    return by_key

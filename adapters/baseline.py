"""``medtasks_baseline``: answers made from the documents, as bounds for the scores of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from medtasks.core.errors import UsageError, exit_with_sentence
from medtasks.runs.replies import Reply

from ._base import MedtasksAdapter
from ._requests import ChatRequest, read_documents
from ._settings import Arguments, Natural, Share
from .policies import DEFAULT_ACCURACY, POLICIES, PolicyQuestion, make_policy, with_confidence

FIELDS = ("sample_id", "target", "abstention", "choices", "guesses", "ideal_response", "task_mode",
          "positive_response", "round", "rounds")  # fmt: skip


class BaselineArguments(Arguments):
    """Arguments of ``medtasks_baseline``; ``policy`` is one of `POLICIES`.

    ``calibrated`` states its probability of being right, ``overconfident`` always 99 %. ``early``,
    ``late`` and ``never`` answer streams too early, too late and not at all, and everything else as
    the oracle.
    """

    policy: str = "oracle"
    # of policies that draw; a draw is independent of order and number of processes
    seed: Natural = 0
    # probability of the reference answer under noisy_oracle (by default 0.7)
    accuracy: Share | None = None
    # of constant (by default ``A`` for multiple choice, else a fixed sentence)
    answer: str | None = None


@dataclass(frozen=True)
class _TaskDocuments:
    """The documents of a task, and the sorted reference answers of all of them."""

    documents: list[dict[str, Any]]
    answers: list[str]


class MedtasksBaseline(MedtasksAdapter):
    """Answers from the documents by a policy (:class:`BaselineArguments`).

    Media are never read. Errors end the process with one sentence and exit code 1.
    """

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        """Choose the policy that `BaselineArguments` name."""
        super().__init__()
        settings = BaselineArguments.read(arguments)
        self._arguments = settings
        self._policy = make_policy(
            settings.policy, seed=settings.seed, accuracy=settings.accuracy, answer=settings.answer
        )

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable; settings without effect are None."""
        arguments = self._arguments
        seed: int | None = None
        if "seed" in POLICIES[arguments.policy].settings:
            seed = arguments.seed
        accuracy: float | None = None
        if arguments.policy == "noisy_oracle":
            accuracy = arguments.accuracy
            if accuracy is None:
                accuracy = DEFAULT_ACCURACY
        return {
            "model": "medtasks_baseline",
            "policy": arguments.policy,
            "seed": seed,
            "accuracy": accuracy,
            "answer": arguments.answer,
        }

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """Answer ``requests`` in their order; all repeats of a sample get the same answer."""
        tasks: dict[tuple[str, str], _TaskDocuments] = {}
        replies: list[Reply] = []
        for request in requests:
            key = (request.task, request.split)
            if key not in tasks:
                tasks[key] = self._read_task(request.task, request.split)
            task = tasks[key]
            document = task.documents[request.doc_id]
            question = PolicyQuestion.of(document, request.sample_id, task.answers)
            text, probabilities = with_confidence(
                self._arguments.policy, self._policy(question), question, self._arguments.seed
            )
            replies.append(Reply(text, finish="stop", probabilities=probabilities))
        return replies

    def _read_task(self, task: str, split: str) -> _TaskDocuments:
        """The documents of a task; those without a reference answer are refused."""
        documents = read_documents(self.task_dict[task][split], FIELDS)
        targets: list[Any] = [document.get("target") for document in documents]
        if not all(isinstance(target, str) for target in targets):
            raise UsageError(
                f"Task {task}: field 'target' of its documents is missing or not a string, but "
                "medtasks_baseline answers from it."
            )
        return _TaskDocuments(documents, sorted(targets))

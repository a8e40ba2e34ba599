"""``medtasks_baseline``: answers made from the documents, as lower and upper bounds for every
task.
"""

from __future__ import annotations

from typing import Any

from medtasks.core.errors import UsageError, exit_with_sentence
from medtasks.runs.replies import Reply

from ._base import Arguments, ChatRequest, MedtasksAdapter, Natural, Share, read_documents
from .policies import DEFAULT_ACCURACY, POLICIES, Question, make_policy, with_confidence

FIELDS = ("sample_id", "target", "abstention", "choices", "guesses", "ideal_response", "task_mode",
          "positive_response", "round", "rounds")  # fmt: skip


class BaselineArguments(Arguments):
    """Arguments of ``medtasks_baseline``; ``policy`` is one of `POLICIES`. ``calibrated`` states
    its probability of being right, ``overconfident`` always 99 %. ``early``, ``late`` and ``never``
    answer streams too early, too late and not at all, and everything else as the oracle.
    """

    policy: str = "oracle"
    seed: Natural = (
        0  # of policies that draw; a draw is independent of order and number of processes
    )
    accuracy: Share | None = (
        None  # probability of the reference answer under noisy_oracle (by default 0.7)
    )
    answer: str | None = (
        None  # of constant (by default ``A`` for multiple choice, else a fixed sentence)
    )


class MedtasksBaseline(MedtasksAdapter):
    """Answers from the documents by a policy (:class:`BaselineArguments`); media are never read.
    Errors end the process with one sentence and exit code 1.
    """

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._given = given = BaselineArguments.read(arguments)
        self._policy = make_policy(
            given.policy, seed=given.seed, accuracy=given.accuracy, answer=given.answer
        )

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable; settings that the policy does not use are
        None.
        """
        given, noisy = self._given, self._given.policy == "noisy_oracle"
        drawn = "seed" in POLICIES[given.policy][1]
        return {
            "model": "medtasks_baseline",
            "policy": given.policy,
            "seed": given.seed if drawn else None,
            "accuracy": (DEFAULT_ACCURACY if given.accuracy is None else given.accuracy)
            if noisy
            else None,
            "answer": given.answer,
        }

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """Answer ``requests`` in their order; all repeats of a sample get the same answer."""
        known: dict[tuple[str, str], tuple[list[dict[str, Any]], list[str]]] = {}
        replies = []
        for request in requests:
            where = (request.task, request.split)
            if where not in known:
                documents = read_documents(self.task_dict[request.task][request.split], FIELDS)
                targets: list[Any] = [document.get("target") for document in documents]
                if not all(isinstance(target, str) for target in targets):
                    raise UsageError(
                        f"Task {request.task}: field 'target' of its documents is missing or not a string, but "
                        "medtasks_baseline answers from it."
                    )
                known[where] = documents, sorted(targets)
            documents, answers = known[where]
            question = Question.of(documents[request.doc_id], request.sample_id, answers)
            text, found = with_confidence(
                self._given.policy, self._policy(question), question, self._given.seed
            )
            replies.append(Reply(text, finish="stop", probabilities=found))
        return replies

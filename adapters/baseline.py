"""``medtasks_baseline``: answers made from the documents alone, as floors and ceilings for every task."""

from __future__ import annotations

from typing import Any

from medtasks.border import at_border
from medtasks.errors import UsageError

from ._arguments import read_integer, read_number, read_text
from ._base import MedtasksAdapter, Response, refuse_unknown
from ._requests import light_rows, read_requests
from .policies import DEFAULT_ACCURACY, Question, make_policy

__all__ = ["MedtasksBaseline"]

FIELDS = (
    "sample_id",
    "target",
    "abstention",
    "choices",
    "guesses",
    "ideal_response",
    "task_mode",
    "positive_response",
    "round",
    "rounds",
)


class MedtasksBaseline(MedtasksAdapter):
    """Answers by ``policy``: oracle, constant, uniform, abstain, noisy_oracle, early, late or never.

    The last three answer streams too early, too late and not at all, and everything else as the oracle does; their
    responsiveness and stability follow from the rounds' times (see ``policies``).

    Arguments
    ---------
    policy
        Which of the policies answers.
    seed
        For uniform and noisy_oracle; each sample has its own draw, whatever the order or number of processes.
    accuracy
        Probability of the reference answer under noisy_oracle, 0 to 1 (0.7 when absent).
    answer
        What constant says (when absent ``A`` for multiple choice, else a fixed sentence).

    It reads of a document what an answer can be made of, and never looks at media.
    Errors end the process with one sentence and exit code 1.
    """

    @at_border
    def __init__(
        self,
        policy: str = "oracle",
        seed: int = 0,
        accuracy: float | None = None,
        answer: object = None,
        batch_size: object = None,  # noqa: ARG002  (these three come from the harness and have no meaning here)
        max_batch_size: object = None,  # noqa: ARG002
        device: object = None,  # noqa: ARG002
        **unknown: Any,
    ) -> None:
        super().__init__()
        refuse_unknown("medtasks_baseline", ("policy", "seed", "accuracy", "answer"), unknown)
        self._name = str(policy)
        self._seed = read_integer("seed", seed, least=0)
        self._accuracy = None if accuracy is None else read_number("accuracy", accuracy, least=0, most=1)
        self._answer = read_text(answer)
        self._policy = make_policy(self._name, seed=self._seed, accuracy=self._accuracy, answer=self._answer)
        self.join_replicas("cpu")

    def describe(self) -> dict[str, Any]:
        """What produced the answers, as JSON; settings that the policy does not use are None."""
        noisy = self._name == "noisy_oracle"
        return {
            "model": "medtasks_baseline",
            "policy": self._name,
            "seed": self._seed if noisy or self._name == "uniform" else None,
            "accuracy": (DEFAULT_ACCURACY if self._accuracy is None else self._accuracy) if noisy else None,
            "answer": self._answer,
        }

    def generate_until(self, requests: list[Any]) -> list[Response]:
        """Answer ``requests`` in their order; all repeats of a sample get the same answer.

        Raises
        ------
        UsageError
            Where a document lacks a field.
        """
        views: dict[tuple[str, str], tuple[Any, list[str]]] = {}
        results = []
        for request in read_requests(requests, self.task_dict):
            if request.padding:
                results.append(Response(""))
                continue
            where = (request.task, request.split)
            if where not in views:
                rows = light_rows(self.task_dict[request.task][request.split], FIELDS)
                views[where] = rows, sorted(_targets(request.task, rows))
            rows, answers = views[where]
            results.append(Response(self._policy(Question.of(rows[request.doc_id], request.sample_id, answers))))
        return results


def _targets(task: str, rows: Any) -> list[str]:
    targets: list[Any]
    if rows is None:
        targets = [None]
    elif hasattr(rows, "column_names"):  # a dataset reads a whole column much faster than row by row
        targets = list(rows["target"]) if "target" in rows.column_names else [None]
    else:
        targets = [row.get("target") for row in rows]
    if not all(isinstance(target, str) for target in targets):
        raise UsageError(
            f"Task {task}: field 'target' of its documents is missing or no text, but medtasks_baseline "
            "makes its answers from it."
        )
    return targets

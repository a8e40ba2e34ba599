"""A back-end of somebody else's, as an object, and runs of the harness with it in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_eval.api.model import lmms
from runs import Run

__all__ = ["Backend", "evaluate"]


class Backend(lmms):  # type: ignore[misc]
    """A chat back-end of the harness that answers with what ``answer`` makes of a document."""

    is_simple = False

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[tuple[str, str]] = []
        self.turns: list[list[dict[str, Any]]] = []
        """The messages of every request."""

    def generate_until(self, requests: list[Any]) -> list[Any]:
        given = []
        for request in requests:
            _, to_messages, _, doc_id, task, split = request.args
            document = self.task_dict[task][split][doc_id]
            self.turns.append(to_messages(document))
            given.append(self.answer(document))
        self.asked += [
            (one.task_name, self.task_dict[one.task_name]["test"][one.doc_id]["sample_id"])
            for one in requests
        ]
        return given

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        raise NotImplementedError

    def loglikelihood(self, requests: list[Any]) -> Any:
        raise NotImplementedError


def evaluate(
    backend: lmms,
    tasks: list[str],
    output: Path,
    *,
    model_args: str | None = "pretrained=foreign/model",
    **settings: Any,
) -> Run:
    """A run of the harness in this process, with a back-end object; of several processes the first
    has the results.
    """
    from lmms_eval import evaluator
    from lmms_eval.loggers import EvaluationTracker
    from lmms_eval.tasks import TaskManager

    tasks_known = TaskManager("WARNING", include_defaults=False)
    stamp = f"20260101_0000{len(list(output.glob('*/*_medtasks'))):02}"
    results = evaluator.simple_evaluate(
        model=backend,
        model_args=model_args,
        tasks=tasks,
        log_samples=False,
        bootstrap_iters=0,
        evaluation_tracker=EvaluationTracker(output_path=str(output)),
        task_manager=tasks_known,
        verbosity="WARNING",
        datetime_str=stamp,
        **settings,
    )
    return Run(Path(results["medtasks"]["folder"] if results else output))

"""The end of a run whose responses are not scored (``--predict_only``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from .endings import RunEnding, ending_of
from .processes import gathered
from .requests import Requests


def unscored_ending(
    requests: Requests, tasks: Iterable[Any], lm: Any, *, first: bool
) -> RunEnding | None:
    """The number of responses to ``tasks`` in all processes, and how to score them.

    None on every process but the ``first``.
    """
    responses, reasons = _outcomes(requests, tasks)
    total_responses = sum(gathered(responses))
    total_reasons = Counter[str]()
    for reasons_of_process in gathered(reasons):
        total_reasons.update(reasons_of_process)
    if not first:
        return None
    folder = requests.store.folder
    text = (
        f"medtasks: {total_responses:,} responses, not scored (--predict_only)\n"
        f"  score them with `medtasks score {folder}`, "
        "or by the same command without --predict_only"
    )
    requested = total_responses + total_reasons.total()
    return ending_of(text, requested, total_reasons, folder, lm, problems=False)


def _outcomes(requests: Requests, tasks: Iterable[Any]) -> tuple[int, Counter[str]]:
    """The number of this process's responses, and of its failed requests by reason."""
    responses = 0
    reasons = Counter[str]()
    for task in tasks:
        for answer in requests.answers(task):
            for reply in answer.replies:
                if reply.failed is not None:
                    reasons[reply.failed] += 1
                elif not reply.missed:
                    responses += 1
    return responses, reasons

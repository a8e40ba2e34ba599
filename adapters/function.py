"""A Python function as a model, for a quick trial."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from medtasks.core.errors import MedtasksError
from medtasks.core.files import short_hash
from medtasks.runs.replies import Reply

from ._base import ChatRequest, MedtasksAdapter


class MedtasksFunction(MedtasksAdapter):
    """Answers each request by calling ``answer`` with its chat messages, one at a time. What the
    function raises, or returns instead of a text, is the reason of a failed request.
    """

    runs_model = True

    def __init__(self, answer: Callable[[list[dict[str, Any]]], str]) -> None:
        super().__init__()
        self._answer = answer

    @property
    def arguments(self) -> str:
        """What identifies the function, as model arguments: a changed one does not continue the run
        of the old one.
        """
        return ",".join(f"{name}={value}" for name, value in self.describe().items())

    def describe(self) -> dict[str, Any]:
        """The function's name, and a hash of its code; variables that it uses are not part of
        it.
        """
        named = self._answer if hasattr(self._answer, "__qualname__") else type(self._answer)
        try:
            code = inspect.getsource(named)
        except (OSError, TypeError):  # typed at a prompt, or not written in Python
            code = repr(getattr(getattr(named, "__code__", None), "co_code", ""))
        name = named.__qualname__.replace("<locals>.", "").replace("<lambda>", "lambda")
        return {"model": "medtasks_function", "checkpoint": name, "code": short_hash(code)}

    def batches(self, requests: list[ChatRequest]) -> list[list[ChatRequest]]:
        """One request each: every answer is stored before the next one is asked for."""
        return [[request] for request in requests]

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The answers to ``requests`` in their order."""
        replies = []
        for request in requests:
            text = self._answer(request.messages(self.task_dict))
            if not isinstance(text, str):
                raise MedtasksError(f"the function returned {type(text).__name__}, expected a text")
            replies.append(Reply(text))
        return replies

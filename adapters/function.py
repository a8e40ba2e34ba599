"""A Python function as a model, for a quick trial."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

from medtasks.core.errors import MedtasksError
from medtasks.core.files import short_hash
from medtasks.runs.replies import Reply, ReplyTiming

from ._base import MedtasksAdapter
from ._requests import ChatRequest


class MedtasksFunction(MedtasksAdapter):
    """Answers each request by calling ``answer`` with its chat messages, one at a time.

    If the function raises an error, or returns something other than a text, the request fails.
    """

    runs_model = True

    def __init__(self, answer: Callable[[list[dict[str, Any]]], str]) -> None:
        """Answer with the function ``answer``."""
        super().__init__()
        self._answer = answer

    @property
    def arguments(self) -> str:
        """The function's identity as model arguments.

        With a changed function, a run of the former one is not continued.
        """
        return ",".join(f"{name}={value}" for name, value in self.describe().items())

    def describe(self) -> dict[str, Any]:
        """The function's name, and a hash of its code without the variables that it uses."""
        # an object that is called has no name: its class has
        function = self._answer if hasattr(self._answer, "__qualname__") else type(self._answer)
        try:
            code = inspect.getsource(function)
        except (OSError, TypeError):  # typed at a prompt, or not written in Python
            bytecode = getattr(function, "__code__", None)
            code = repr(getattr(bytecode, "co_code", ""))
        name = function.__qualname__.replace("<locals>.", "").replace("<lambda>", "lambda")
        return {"model": "medtasks_function", "checkpoint": name, "code": short_hash(code)}

    def batches(self, requests: list[ChatRequest]) -> list[list[ChatRequest]]:
        """One request a batch: every answer is stored before the next request."""
        return [[request] for request in requests]

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The answers to ``requests`` in their order."""
        replies = []
        for request in requests:
            messages = request.messages(self.task_dict)
            began = time.monotonic()
            text = self._answer(messages)
            timing = ReplyTiming(time.monotonic() - began, began)
            if not isinstance(text, str):
                raise MedtasksError(f"the function returned {type(text).__name__}, expected a text")
            replies.append(Reply(text, timing=timing))
        return replies

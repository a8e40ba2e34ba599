"""One replica: the engine in a Ray actor, and its replies to a unit."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from medtasks.core.errors import UsageError, first_line
from medtasks.harness.isolation import isolated
from medtasks.harness.presentation import takes_system_prompt
from medtasks.runs.replies import Reply

from ._ray_units import Payload


class UnitResult(NamedTuple):
    """The replies of a replica to a unit, with the positions of their requests.

    ``facts`` is the engine's description, whose usage grows.
    """

    replies: list[tuple[int, Reply]]
    facts: dict[str, Any]
    takes_system_prompt: bool


class Replica:
    """The engine, in a Ray actor; it is imported where it runs."""

    def __init__(self, engine: str, arguments: dict[str, Any]) -> None:
        """Name the engine's class and its arguments; the first unit loads it."""
        self._engine = engine
        self._arguments = arguments
        self._model: Any = None

    def answer(self, unit: Payload) -> UnitResult:
        """Answer a unit; one without requests loads the model.

        Raises:
            UsageError: the engine cannot be imported or started.
        """
        module, _, kind = self._engine.rpartition(".")
        try:
            engine = getattr(import_module(module), kind)
        except Exception as error:  # a module may raise anything
            raise UsageError(
                f"engine={self._engine} cannot be imported on this node ({first_line(error)})."
            ) from None
        try:
            self._model = self._model or engine(**self._arguments)
        except SystemExit as end:  # back-ends end their process with one sentence
            raise UsageError(str(end.__cause__ or end)) from None
        requests, self._model.task_dict = unit
        replies: list[tuple[int, Reply]] = []
        for batch in isolated(self._model.batches(requests), self._model.answer):
            replies.extend((request.position, reply) for request, reply in batch)
        return UnitResult(replies, self._model.describe(), takes_system_prompt(self._model))

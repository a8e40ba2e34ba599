"""One replica: the engine in a Ray actor, and its replies to a unit."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from medtasks.core.errors import UsageError, first_line
from medtasks.harness.hardware import hardware_of
from medtasks.harness.isolation import isolated
from medtasks.harness.presentation import takes_system_prompt
from medtasks.runs.replies import Reply

from ._ray_units import Payload


class UnitResult(NamedTuple):
    """The replies of a replica to a unit, with the positions of their requests.

    When they were sent is since the replica got the unit, because nodes have different clocks.
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
        began = time.monotonic()
        hardware = hardware_of(self._model)
        replies: list[tuple[int, Reply]] = []
        for batch in isolated(self._model.batches(requests), self._model.answer):
            for request, reply in batch:
                replies.append((request.position, _timed(reply, began, hardware)))
        return UnitResult(replies, self._model.describe(), takes_system_prompt(self._model))


def _timed(reply: Reply, began: float, hardware: str | None) -> Reply:
    """The reply, whose timing names the hardware and counts from the reading ``began`` of the
    clock.
    """
    if reply.timing is None:
        return reply
    timing = replace(reply.timing, sent=reply.timing.sent - began, hardware=hardware)
    return replace(reply, timing=timing)

"""Preparing the next batch while the device works on this one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["Ahead"]

B = TypeVar("B")
P = TypeVar("P")


class Ahead(Generic[B, P]):
    """Prepares one batch ahead in a thread of its own.

    Args:
        prepare: makes of a batch what the device needs; what it raises, :meth:`take` raises for that batch.
    """

    def __init__(self, prepare: Callable[[B], P]) -> None:
        self._prepare = prepare
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._begun: tuple[B, Future[P]] | None = None

    def take(self, batch: B, following: B | None) -> P:
        """``batch`` prepared; ``following`` is prepared from now on."""
        if self._begun is not None and self._begun[0] == batch:
            future = self._begun[1]
            self._begun = None
        else:
            future = self._thread.submit(self._prepare, batch)
        prepared = future.result()
        if following is not None and (self._begun is None or self._begun[0] != following):
            self._begun = (following, self._thread.submit(self._prepare, following))
        return prepared

    def forget(self) -> None:
        """Let go of a batch that was begun."""
        self._begun = None

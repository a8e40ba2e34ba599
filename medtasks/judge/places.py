"""Who of several judging processes may have how many requests in flight: always all that are allowed, never more."""

from __future__ import annotations

import asyncio
from typing import Protocol

from medtasks.judge.client import JudgeClient

__all__ = ["Places", "Worker"]

SOON = 0.005  # seconds


class Worker(Protocol):
    """Another process."""

    @property
    def places(self) -> int:
        """The places that it gets first."""

    def use_places(self, places: int) -> None:
        """Tell it how many it may use."""


class Places:
    """The places in flight of ``client.settings``: this process has them all until a worker has started.

    Nobody gets a place before another has given it up; whoever is done leaves its places to the others. Methods run on
    the event loop; `started` and `ended` may be called from any thread.
    """

    def __init__(self, client: JudgeClient) -> None:
        self._client, self._own = client, client.settings.concurrency
        self._here = True  # this process has questions left
        self._spare = 0
        self._active: dict[Worker, int] = {}
        self._waiting: list[Worker] = []
        self._loop = asyncio.get_running_loop()

    def started(self, worker: Worker) -> None:
        self._loop.call_soon_threadsafe(self._admit, worker)

    def ended(self, worker: Worker) -> None:
        self._loop.call_soon_threadsafe(self._release, worker)

    def left(self) -> None:
        """This process has no questions left."""
        self._here = False
        self._spare, self._own = self._spare + self._own, 0
        self._share_out()

    def _admit(self, worker: Worker) -> None:
        self._waiting.append(worker)
        if self._here:
            self._own -= worker.places
            self._client.use_places(self._own)
            self._spare += worker.places
        self._share_out()

    def _release(self, worker: Worker) -> None:
        self._spare += self._active.pop(worker, 0)
        self._share_out()

    def _share_out(self) -> None:
        """Give spare places to whoever waits for them, else to one that has too few."""
        if self._here and self._client.in_flight > self._own:
            self._loop.call_later(SOON, self._share_out)  # what is to be given is still in use
            return
        while self._waiting:
            self._give(self._waiting.pop(0))
        if self._spare and self._here:
            self._own, self._spare = self._own + self._spare, 0
            self._client.use_places(self._own)
        elif self._spare and self._active:
            self._give(next(iter(self._active)), all_of_them=True)

    def _give(self, worker: Worker, *, all_of_them: bool = False) -> None:
        given = self._spare if all_of_them else min(worker.places, self._spare)
        self._spare -= given
        self._active[worker] = self._active.get(worker, 0) + given
        worker.use_places(self._active[worker])

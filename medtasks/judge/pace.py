"""How many requests may be in flight: as many as the endpoint takes."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Pace"]

FEW, AMONG = 2, 20  # refusals, answers
GROWTH = 2  # answers


class Pace:
    """A limit on the requests in flight that halves when the endpoint refuses and grows back as it answers.

    - Single refusals, up to `FEW` among the last `AMONG` answers, concern their own requests only.
    - Further ones halve the limit, once per limit: what was sent before a halving says nothing about the new limit.
    - Where nothing was answered between two halvings, the endpoint is shut: nobody enters until it may be asked again.
    - `GROWTH` answers add one to the limit, up to the ceiling.

    Entry is in order of arrival. For one event loop at a time.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = self.limit = ceiling
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._opens = 0.0  # on the loop's clock
        self._halvings = 0
        self._answers = 0
        self._refused: deque[int] = deque(maxlen=FEW)  # answers before the last refusals
        self._grown = 0  # answers since the limit grew
        self._answered = True  # since the last halving

    async def enter(self) -> int:
        """Wait for a place; the number to give to `refused` if the endpoint refuses."""
        if self._waiting or not self._room():
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self.leave()  # it had been let in
                raise
        else:
            self.in_flight += 1
        return self._halvings

    def leave(self) -> None:
        """Give the place back, after `answered` or `refused`."""
        self.in_flight -= 1
        self._admit()

    def answered(self) -> None:
        self._answered = True
        self._answers += 1
        self._grown += 1
        if self._grown >= GROWTH and self.limit < self.ceiling:
            self.limit += 1
            self._grown = 0

    def refused(self, entered: int, seconds: float) -> None:
        """The endpoint answered 429 to what entered with that number; it may be asked again after ``seconds``."""
        single = len(self._refused) < FEW or self._answers - self._refused[0] >= AMONG
        self._refused.append(self._answers)
        if single or entered != self._halvings:
            return
        if not self._answered:
            self._shut(seconds)
        self.limit = max(1, self.limit // 2)
        self._halvings += 1
        self._grown = 0
        self._answered = False

    def restart(self) -> None:
        """Forget who waits and what a former event loop's clock said; the limit stays."""
        self._waiting.clear()
        self.in_flight, self._opens = 0, 0.0

    def _shut(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._opens = max(self._opens, loop.time() + seconds)
        loop.call_at(self._opens, self._admit)

    def _room(self) -> bool:
        return self.in_flight < self.limit and asyncio.get_running_loop().time() >= self._opens

    def _admit(self) -> None:
        while self._waiting and self._room():
            place = self._waiting.popleft()
            if not place.done():  # its waiter may have been cancelled
                self.in_flight += 1
                place.set_result(None)

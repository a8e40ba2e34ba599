"""A limit on the requests in flight that adapts to the endpoint."""

from __future__ import annotations

import asyncio

GROWTH = 2  # answers


class RateLimiter:
    """Halves the limit when the endpoint refuses requests (HTTP 429), and raises it as the endpoint answers.

    - Refusals of requests sent before a halving do not halve it again.
    - If nothing was answered between two halvings, no request enters until the endpoint may be asked again.
    - Every `GROWTH` answers add one to the limit, up to the ceiling.

    Requests enter in order of arrival. `open` binds the limiter to the running event loop.
    """

    def __init__(self, ceiling: int) -> None:
        self.limit = self._ceiling = ceiling
        self.open()

    def open(self) -> None:
        """Start on another event loop; the limit stays."""
        self._slots = asyncio.Semaphore(self.limit)
        self._withheld = 0  # slots that are not reused when they are released
        self._opens = 0.0  # on the loop's clock
        self._halvings = 0
        self._answers = 1  # since the last halving; 1: the first halving does not close the endpoint

    async def enter(self) -> int:
        """Wait for a slot; returns the number to pass to `refused`."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        while (closed := self._opens - loop.time()) > 0:
            await asyncio.sleep(closed)
        return self._halvings

    def leave(self) -> None:
        """Give the slot back, after `answered` or `refused`."""
        if self._withheld:
            self._withheld -= 1
        else:
            self._slots.release()

    def answered(self) -> None:
        self._answers += 1
        if self._answers % GROWTH == 0 and self.limit < self._ceiling:
            self.limit += 1
            if self._withheld:
                self._withheld -= 1
            else:
                self._slots.release()

    def refused(self, entered: int, seconds: float) -> None:
        """The endpoint refused what entered with that number; it may be asked again after ``seconds``."""
        if entered != self._halvings:
            return
        if not self._answers:
            self._opens = asyncio.get_running_loop().time() + seconds
        lower = max(1, self.limit // 2)
        self._withheld += self.limit - lower
        self.limit = lower
        self._halvings += 1
        self._answers = 0

"""The number of requests in flight that an endpoint accepts."""

from __future__ import annotations

import asyncio

GROWTH = 2  # answers


class RateLimiter:
    """Limits the requests in flight to what the endpoint accepts.

    The limit is halved when the endpoint refuses requests (HTTP 429), but not again for those sent
    before the halving, and grows by one every `GROWTH` answers. If nothing was answered between two
    halvings, no request enters until the endpoint may be asked again.
    """

    def __init__(self, ceiling: int, limit: int) -> None:
        self.limit, self._ceiling = limit, ceiling
        self._slots = asyncio.Semaphore(limit)
        self._withheld = 0  # slots that are not reused when they are released
        self._opens = 0.0  # on the loop's clock
        self._halvings = 0
        # since the last halving; 1: the first halving does not close the endpoint
        self._answers = 1

    async def enter(self) -> int:
        """Wait for a slot; returns the number to pass to `refused`."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        while loop.time() < self._opens:
            await asyncio.sleep(self._opens - loop.time())
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
            self.leave()  # a slot more

    def refused(self, entered: int, seconds: float) -> None:
        """Note that the endpoint refused what entered with that number, for ``seconds``."""
        if entered != self._halvings:
            return
        if not self._answers:
            self._opens = asyncio.get_running_loop().time() + seconds
        lower = max(1, self.limit // 2)
        self._withheld += self.limit - lower
        self.limit = lower
        self._halvings += 1
        self._answers = 0

"""The work and the timing of replies, on the clock of one part of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from medtasks.runs.replies import Reply, ReplyTiming, Work

from .hardware import hardware_of
from .memory import PeakMemory


class WorkClock:
    """Adds to replies what they cost since the process sent its first request.

    ``memory`` measures the peak memory of the process; None if no model answers, whose work is
    measured.
    """

    def __init__(self, memory: Callable[[], PeakMemory] | None) -> None:
        self._memory = memory
        # times of the first request, and of the latest reply or call
        self._began = 0.0
        self._since = 0.0
        self._hardware: str | None = None

    def start(self, lm: Any) -> None:
        """Note that the back-end ``lm`` is asked from now on."""
        self._since = time.monotonic()
        if not self._began:
            self._began = self._since
            self._hardware = hardware_of(lm) if self._memory is not None else None

    def measured(self, replies: Sequence[Reply]) -> list[Reply]:
        """The replies that just arrived, each with its work and its timing."""
        if self._memory is None:
            return [replace(reply, timing=None) for reply in replies]
        work = self._work(len(replies), self._memory())
        return [replace(reply, work=work, timing=self._timing(reply)) for reply in replies]

    def _work(self, replies: int, memory: PeakMemory) -> Work:
        """The time since the last replies arrived, in equal shares, and the memory."""
        since, self._since = self._since, time.monotonic()
        return Work(
            start=round(since - self._began, 6),
            end=round(self._since - self._began, 6),
            seconds=round((self._since - since) / max(replies, 1), 6),
            device_memory=memory.gpus,
            rss=memory.resident,
        )

    def _timing(self, reply: Reply) -> ReplyTiming | None:
        """The timing of a reply, ``sent`` since the first request instead of by the clock."""
        timing = reply.timing
        if timing is None:
            return None
        return ReplyTiming(  # quicker than `replace`
            seconds=round(timing.seconds, 6),
            sent=round(timing.sent - self._began, 6),
            queued=_rounded(timing.queued),
            first_token=_rounded(timing.first_token),
            batch=timing.batch,
            in_flight=timing.in_flight,
            attempts=timing.attempts,
            hardware=timing.hardware or self._hardware,
        )


def _rounded(seconds: float | None) -> float | None:
    """Seconds to the microsecond."""
    return None if seconds is None else round(seconds, 6)

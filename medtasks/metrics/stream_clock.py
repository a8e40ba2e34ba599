"""Streams on the clock: whether computing keeps up with a stream, and when answers are there.

Section 5.5 of arXiv 2607.01751 scores when a model answers in the time of the stream, as if
computing took no time. Here the seconds of computing are added to the time of each answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from medtasks.core.errors import DataError
from medtasks.metrics.streaming import SAME_TIME, Stream, responsiveness_at


@dataclass(frozen=True)
class RoundClock:
    """The seconds of one round.

    Args:
        seconds: of computing its answer; None for a missed round, which was not sent.
        delay: from when the round was due to when its answer was there, None for a missed round. In
            a run that is not paced, every round is sent when it is due, as it were, so the delay is
            the ``seconds``; in a paced run, a late model also sends late.
    """

    seconds: float | None
    delay: float | None


@dataclass(frozen=True)
class ClockedStream:
    """A stream and the seconds of its rounds.

    Args:
        stream: the rounds, in order.
        rounds: the clock of each.
        unit: how many of the stream's units of time are a second: 1, or the frame rate of an image
            sequence.

    Raises:
        DataError: not one clock per round.
    """

    stream: Stream
    rounds: tuple[RoundClock, ...]
    unit: float = 1.0

    def __post_init__(self) -> None:
        turns = len(self.stream.turns)
        if len(self.rounds) != turns:
            raise DataError(
                f"a stream has {turns} rounds and the seconds of {len(self.rounds)}, expected one "
                "per round"
            )

    @property
    def missed(self) -> int:
        """The number of missed rounds."""
        return sum(clock.delay is None for clock in self.rounds)

    @property
    def gaps(self) -> list[float]:
        """Seconds from each round to the next one; none after the last."""
        times = [turn.time for turn in self.stream.turns]
        return [(after - before) / self.unit for before, after in pairwise(times)]


def real_time_factors(clocked: ClockedStream) -> list[float | None]:
    """Seconds of computing by seconds of stream, for each round but the last: how long its answer
    took, by the time until the next round is due. None for a missed round.

    Up to 1, the model keeps up with the stream. The last round has no next one, and no factor.
    """
    factors: list[float | None] = []
    for clock, gap in zip(clocked.rounds, clocked.gaps, strict=False):
        factors.append(None if clock.seconds is None else clock.seconds / gap)
    return factors


def answered_in_time(clocked: ClockedStream) -> list[bool]:
    """Whether the answer to each round but the last was there when the next one was due; a missed
    round has none.
    """
    in_time: list[bool] = []
    for clock, gap in zip(clocked.rounds, clocked.gaps, strict=False):
        in_time.append(clock.delay is not None and clock.delay <= gap + SAME_TIME)
    return in_time


def responsiveness_with_computing(clocked: ClockedStream) -> float:
    """R (`medtasks.metrics.streaming.timed_scores`) by when answers are there, 0..1.

    The law, its scale and its tolerance are the same. The time of the first positive response is
    the earliest at which one of them is there: the round's time, plus its delay. A premature
    response gains by a delay, as it would if the model had waited.
    """
    there: list[float] = []
    for turn, clock in zip(clocked.stream.turns, clocked.rounds, strict=True):
        if turn.positive and clock.delay is not None:
            there.append(turn.time + clock.delay * clocked.unit)
    return responsiveness_at(clocked.stream, min(there, default=None))

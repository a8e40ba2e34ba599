"""Paced streams: each round is sent when it is due, and a model that is still busy misses rounds.

One stream is sent after the other, one request at a time, whatever the back-end could have in
flight: the model has its hardware for one stream, as in an operating room. The clock of a stream
starts when its first round is due, at once. A round is due as many seconds later as its time in the
stream is later than the first round's. When the model has answered, it gets the newest round that
is due by then; rounds before that one, which have not been sent, are *missed*. So the first and the
last round of a stream are never missed. Reading the frames of a round counts as answering it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from medtasks.core.text import counted
from medtasks.runs.replies import Answer, PacedRound, Reply, Slot

from .stream_times import StreamRound, StreamRounds

GIVE_UP = 8
"""Failed requests in a row after which the remaining streams are not sent: they would take their
whole time to fail.
"""
NOT_SENT = f"not asked: the {GIVE_UP} requests before it failed"


class Clock(Protocol):
    """A clock in seconds that never goes back."""

    def now(self) -> float:
        """The time since some fixed moment."""

    def wait_until(self, moment: float) -> None:
        """Return at ``moment``, at once if it has passed."""


class WallClock:
    """Real time."""

    def now(self) -> float:
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        remaining = moment - self.now()
        while remaining > 0:
            time.sleep(remaining)
            remaining = moment - self.now()


class Store(Protocol):
    """The replies that are kept, as in `medtasks.runs.unfinished.AnswerStore`."""

    def reply(self, slot: Slot) -> Reply | None:
        """The reply to a request, None if there is none."""

    def add(self, answers: Iterable[Answer]) -> None:
        """Keep replies."""


def play(
    due_times: Sequence[float], ask: Callable[[int], Reply], clock: Clock, attempt: int = 1
) -> list[Reply]:
    """The reply to each round of one stream; that to a missed one is empty (`Reply.missed`).

    Args:
        due_times: when each round is due, ascending seconds since the first one, which is 0.
        ask: sends the round with this number, from 0, and returns when it is answered.
        clock: measures the time, and waits.
        attempt: how often the stream was started, with this time.
    """
    begin = clock.now()
    replies: list[Reply] = []
    while len(replies) < len(due_times):
        clock.wait_until(begin + due_times[len(replies)])
        sent = clock.now() - begin
        newest = _newest_due(due_times, sent, first=len(replies))
        for due in due_times[len(replies) : newest]:
            replies.append(Reply("", paced=PacedRound(attempt, due)))
        reply = ask(newest)
        answered = clock.now() - begin
        paced = PacedRound(attempt, due_times[newest], round(sent, 6), round(answered, 6))
        replies.append(replace(reply, paced=paced))
    return replies


def _newest_due(due_times: Sequence[float], now: float, *, first: int) -> int:
    """The number of the newest round that is due, at least ``first``."""
    newest = first
    while newest + 1 < len(due_times) and due_times[newest + 1] <= now:
        newest += 1
    return newest


class SentRound(NamedTuple):
    """A round of a stream, its slot and its request."""

    round: StreamRound
    slot: Slot
    request: Any


@dataclass
class StreamPlayer:
    """Sends the streams of tasks in real time, and keeps their replies in ``store``.

    The replies to a stream are kept together when it ends. An interrupted stream, or one of which a
    request failed, starts again from its first round when the run is resumed; others are kept.
    ``ask`` sends one request.
    """

    store: Store
    ask: Callable[[Any], Reply]
    clock: Clock

    def play_streams(
        self, streams: Sequence[Sequence[SentRound]], played: Callable[[int], object]
    ) -> None:
        """Send the rounds of all ``streams``; ``played`` gets the number of rounds of each."""
        failures = 0
        for rounds in streams:
            if failures >= GIVE_UP:
                replies = [Reply.failure(NOT_SENT)] * len(rounds)
            else:
                replies = self._played(rounds)
                failures = _failures_in_a_row(failures, replies)
            answers = []
            for sent, reply in zip(rounds, replies, strict=True):
                answers.append(Answer(sent.slot, reply))
            self.store.add(answers)
            played(len(rounds))

    def _played(self, rounds: Sequence[SentRound]) -> list[Reply]:
        """The replies to one stream."""
        attempt = 1 + max(reply.attempt for reply in self._kept(rounds))

        def ask(number: int) -> Reply:
            return self.ask(rounds[number].request)

        return play(due_times(rounds), ask, self.clock, attempt)

    def _kept(self, rounds: Sequence[SentRound]) -> list[Reply]:
        """The replies to one stream so far, a failure for each round without one."""
        replies = []
        for sent in rounds:
            replies.append(self.store.reply(sent.slot) or Reply.failure(NOT_SENT))
        return replies

    def is_finished(self, rounds: Sequence[SentRound]) -> bool:
        """Whether one attempt answered or missed every round, so that none is sent again."""
        replies = self._kept(rounds)
        attempts = {reply.attempt for reply in replies}
        return len(attempts) == 1 and all(reply.failed is None for reply in replies)


def _failures_in_a_row(before: int, replies: Iterable[Reply]) -> int:
    """How many of the latest requests failed in a row; missed rounds are not requests."""
    failures = before
    for reply in replies:
        if reply.failed is not None:
            failures += 1
        elif not reply.missed:
            failures = 0
    return failures


def due_times(rounds: Sequence[SentRound]) -> list[float]:
    """When each round of a stream is due, in seconds since its first round."""
    first = rounds[0].round.time
    return [sent.round.time - first for sent in rounds]


def duration_text(streams: Sequence[Sequence[SentRound]]) -> str:
    """How many streams are sent, and how long this takes at least."""
    seconds = sum(due_times(rounds)[-1] for rounds in streams)
    duration = timedelta(seconds=math.ceil(seconds))
    return f"{counted(len(streams), 'stream')} in real time, one at a time: at least {duration}"


def streams_of(
    requests: Sequence[tuple[Slot, Any]], paced: Mapping[str, StreamRounds]
) -> list[list[SentRound]]:
    """The requests as streams, in the order of their first request; rounds are in order."""
    streams: dict[tuple[str, str], list[SentRound]] = {}
    for slot, request in requests:
        stream_round = paced[slot.task][slot.doc_id]
        rounds = streams.setdefault((slot.task, stream_round.item), [])
        rounds.append(SentRound(stream_round, slot, request))
    for rounds in streams.values():
        rounds.sort(key=lambda sent: sent.round.number)
    return list(streams.values())

"""Batches in which a failing request has no effect on the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from medtasks.core.errors import UsageError, first_line
from medtasks.runs.replies import Reply, ReplyTiming

GIVE_UP = 64
"""Consecutive failures after which the task's remaining requests are not sent."""
NOT_SENT = f"not asked: the {GIVE_UP} requests before it failed"


def isolated(
    batches: Iterable[Sequence[Any]], answer: Callable[[Any], Sequence[Reply]]
) -> Iterator[list[tuple[Any, Reply]]]:
    """Yield the requests (each of a ``task``) of every batch, or of a part of it, with replies.

    A batch for which ``answer`` raises is halved until the failing requests are alone. After
    `GIVE_UP` failures in a row a task's further requests are not sent. A reply without a timing of
    its own gets that of the batch that was answered, without batches that failed before; ``sent``
    is the reading of `time.monotonic`.

    Raises:
        UsageError: ``answer`` raises one: it ends the run.
    """
    failures = Counter[str]()  # in a row, by task
    for batch in batches:
        parts = [batch]
        while parts:
            part = parts.pop()
            given_up = [request for request in part if failures[request.task] >= GIVE_UP]
            if given_up:
                yield [(request, Reply.failure(NOT_SENT)) for request in given_up]
                part = [request for request in part if failures[request.task] < GIVE_UP]
            if not part:
                continue
            replies, reason = _replies_or_reason(part, answer)
            if reason and len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
                continue
            if reason:
                replies = [Reply.failure(reason)]
            answered = list(zip(part, replies, strict=True))
            _count_failures(failures, answered)
            yield answered


def _count_failures(failures: Counter[str], answered: Iterable[tuple[Any, Reply]]) -> None:
    """Update each task's number of failures in a row."""
    for request, reply in answered:
        if reply.failed is None:
            failures[request.task] = 0
        else:
            failures[request.task] += 1


def _replies_or_reason(
    part: Sequence[Any], answer: Callable[[Any], Sequence[Reply]]
) -> tuple[list[Reply], str]:
    """The replies to a part of a batch, or none and the reason.

    The exception is not returned: its frames would keep images and tensors alive.
    """
    began = time.monotonic()
    try:
        replies = [reply.checked() for reply in answer(part)]
        seconds = time.monotonic() - began
        if len(replies) != len(part):
            raise ValueError(
                f"the back-end returned {len(replies)} responses to {len(part)} requests"
            )
    except UsageError:
        raise
    except Exception as error:  # models and third-party back-ends may raise anything
        return [], first_line(error)
    timing = ReplyTiming(seconds, began, batch=len(part), in_flight=len(part))
    return [_timed(reply, timing) for reply in replies], ""


def _timed(reply: Reply, timing: ReplyTiming) -> Reply:
    """The reply with the timing of its batch, unless it failed or has one of its own."""
    if reply.failed is not None or reply.timing is not None:
        return reply
    return replace(reply, timing=timing)

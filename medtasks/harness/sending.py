"""Sending requests to a back-end, so that a failing one does not affect the others; what a run uses: memory of the
process, and the work of all processes."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from medtasks.core.errors import UsageError, first_line
from medtasks.core.settings import current_settings
from medtasks.runs.replies import Answer, Reply
from medtasks.runs.run import read_work

GIVE_UP = 64
"""After this many consecutive failures, the task's remaining requests are not sent."""
NOT_SENT = f"not asked: the {GIVE_UP} requests before it failed"

T = TypeVar("T")

Memory = tuple[int | None, int | None]
"""Peak bytes of this process so far, on its GPUs and resident; None if that is not where its model is."""


def isolated(
    batches: Iterable[Sequence[T]], task_of: Callable[[T], str], answer: Callable[[Any], Sequence[Reply]]
) -> Iterator[list[tuple[T, Reply]]]:
    """Yield the requests of each batch, or of a part of it, with the replies that ``answer`` returns in their order.

    A batch for which ``answer`` raises is halved until the failing requests are alone: these fail, the others are
    answered. After `GIVE_UP` consecutive failures of a task its further requests are not sent.

    Raises:
        UsageError: raised by ``answer``, because the whole run is misconfigured.
    """
    failures = Counter[str]()
    for batch in batches:
        parts = [batch]
        while parts:
            part = parts.pop()
            given_up = [request for request in part if failures[task_of(request)] >= GIVE_UP]
            if given_up:
                yield [(request, Reply.failure(NOT_SENT)) for request in given_up]
                part = [request for request in part if failures[task_of(request)] < GIVE_UP]
            if not part:
                continue

            reason = ""
            try:
                replies = [reply.checked() for reply in answer(part)]
                if len(replies) != len(part):
                    raise ValueError(f"the back-end returned {len(replies)} responses to {len(part)} requests")
            except UsageError:
                raise
            except Exception as error:  # models and third-party back-ends may raise anything
                reason = first_line(error)
            # outside the `except` block: the exception's frames would keep images and tensors alive
            if reason and len(part) > 1:
                parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                continue
            if reason:
                replies = [Reply.failure(reason)]
            for request, reply in zip(part, replies, strict=True):
                failures[task_of(request)] = 0 if reply.failed is None else failures[task_of(request)] + 1
            yield list(zip(part, replies, strict=True))


def memory_of(lm: Any) -> Callable[[], Memory] | None:
    """Measures the memory of the process, if the model of ``lm`` is in it; None if no model answers."""
    if not getattr(lm, "runs_model", True):
        return None
    import torch

    held = vars(lm).get("_model", vars(lm).get("model"))
    inside = getattr(lm, "holds_model", isinstance(held, torch.nn.Module))

    def measured() -> Memory:
        if not inside:
            return None, None
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            return sum(torch.cuda.max_memory_allocated(number) for number in range(torch.cuda.device_count())), None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return None, peak if sys.platform == "darwin" else peak * 1024

    return measured


def work_so_far(folder: Path) -> dict[int, list[Answer]]:
    """What the replies to the command took, with those of earlier, unfinished runs, by process.

    Each process reads its own file, which no other is writing to; the first one also those of processes that no longer
    exist.
    """
    rank, processes = current_settings().rank, current_settings().processes
    spent = read_work(folder)
    return {number: part for number, part in spent.items() if number == rank or (rank == 0 and number >= processes)}


def gathered(own: Any) -> list[Any]:
    """What every process passes, by rank, on the first process; others get an empty list."""
    import torch

    if current_settings().processes < 2 or not torch.distributed.is_initialized():
        return [own]
    first = torch.distributed.get_rank() == 0
    everyone: list[Any] = [None] * torch.distributed.get_world_size() if first else []
    torch.distributed.gather_object(own, everyone if first else None, dst=0)
    return everyone

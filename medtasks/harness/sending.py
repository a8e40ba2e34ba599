"""Sending requests to a back-end: replies are saved at once, and a failing request does not affect the others; what a
run uses: memory of the process, and the work of all processes."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks.core.errors import UsageError, first_line
from medtasks.core.settings import current_settings
from medtasks.runs.replies import Answer, Reply, Slot, Work
from medtasks.runs.run import AnswerStore, read_work

GIVE_UP = 64
"""After this many consecutive failures, the task's remaining requests are not sent."""
NOT_SENT = f"not asked: the {GIVE_UP} requests before it failed"

Call = Callable[[list[int]], Sequence[Reply]]
"""Sends the requests at these positions and returns their replies in the same order; may raise any exception."""

Memory = tuple[int | None, int | None]
"""Peak bytes of this process so far, on its GPUs and resident; None if that is not where its model is."""


class Sender:
    """Sends requests in batches, saves each reply at once, and does not repeat requests that were answered before.

    Args:
        store: saves the replies, and has those of earlier, unfinished runs of the same command.
        memory: measures memory; None if no model answers, so that work is not measured.
    """

    def __init__(self, store: AnswerStore, memory: Callable[[], Memory] | None = None) -> None:
        self.store = store
        self._memory = memory
        self._began: float | None = None
        self._since = 0.0
        self._in_a_row: Counter[str] = Counter()
        self._reported: set[str] = set()

    def ask(self, slots: Sequence[Slot], batches: Iterable[Sequence[int]], call: Call) -> None:
        """Send the requests that have no response yet; the replies are in the store.

        Args:
            slots: the requests.
            batches: positions in ``slots`` to send together, in sending order.
            call: sends some of the requests. If it raises, the batch is halved until the failing requests are isolated;
                these fail, the others are answered.

        Raises:
            UsageError: raised by ``call``, because the whole run is misconfigured.
            OSError: a reply cannot be written.
        """
        self.begin()
        for batch in batches:
            self._send([position for position in batch if not self.store.is_answered(slots[position])], slots, call)

    def begin(self) -> None:
        """The back-end begins to work now."""
        self._since = time.monotonic()
        self._began = self._since if self._began is None else self._began

    def _send(self, batch: list[int], slots: Sequence[Slot], call: Call) -> None:
        batch = [position for position in batch if not self._given_up(slots[position])]
        if not batch:
            return
        given: list[Reply] = []
        reason = ""
        try:
            given = [reply.checked() for reply in call(batch)]
            if len(given) != len(batch):
                raise ValueError(f"the back-end returned {len(given)} responses to {len(batch)} requests")
        except UsageError:
            raise
        except Exception as error:  # third-party back-ends may raise anything
            reason = first_line(error)
        # retry outside the `except` block: the exception's frames would keep images and tensors alive
        if reason and len(batch) > 1:
            half = len(batch) // 2
            self._send(batch[:half], slots, call)
            self._send(batch[half:], slots, call)
            return
        if reason:
            given = [Reply.failure(reason)]
        self.keep([(slots[position], reply) for position, reply in zip(batch, given, strict=True)])

    def _given_up(self, slot: Slot) -> bool:
        if self._in_a_row[slot.task] < GIVE_UP:
            return False
        self.keep([(slot, Reply.failure(NOT_SENT))], asked=False)
        return True

    def keep(self, answers: Sequence[tuple[Slot, Reply]], *, asked: bool = True) -> None:
        """Save replies that the back-end just returned, or that it was not ``asked`` for (the outcome of rounds)."""
        fresh = [(slot, reply) for slot, reply in answers if not self.store.is_answered(slot)]
        if asked and self._memory is not None:
            began, since, now = self._began or 0.0, self._since, time.monotonic()
            self._since = now
            share = (now - since) / max(len(fresh), 1)  # of the time since the last replies were saved
            work = Work(round(since - began, 6), round(now - began, 6), round(share, 6), *self._memory())
            fresh = [(slot, replace(reply, work=work)) for slot, reply in fresh]
        self.store.add(Answer(slot, reply) for slot, reply in fresh)
        for slot, reply in fresh:
            if reply.failed is None:
                self._in_a_row[slot.task] = 0
                continue
            self._in_a_row[slot.task] += 1
            if slot.task not in self._reported:
                self._reported.add(slot.task)
                print(
                    f"medtasks: {slot.task}: a request failed ({reply.failed}) and counts as not answered; run "
                    "the same command again to resend it",
                    file=sys.stderr,
                    flush=True,
                )


def memory_of(lm: Any) -> Callable[[], Memory] | None:
    """Measures the memory of the process, if the model of ``lm`` is in it; None if no model answers."""
    if not getattr(lm, "runs_model", True):
        return None
    import torch

    held = vars(lm).get("_model", vars(lm).get("model"))
    return _memory if getattr(lm, "holds_model", isinstance(held, torch.nn.Module)) else lambda: (None, None)


def _memory() -> Memory:
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return sum(torch.cuda.max_memory_allocated(number) for number in range(torch.cuda.device_count())), None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return None, peak if sys.platform == "darwin" else peak * 1024


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

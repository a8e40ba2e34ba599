"""Which requests are sent together to a back-end of the harness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from medtasks.runs.replies import Slot

from .arrivals import arrive_one_by_one

_SMALLEST = 32
"""Least requests that are sent together to a back-end with several in flight."""
_ROUNDS_IN_FLIGHT = 8
"""How many times the requests in flight are sent together."""
_CONCURRENCY = ("num_concurrent", "num_cpus", "max_concurrency")
"""Attributes with the number of requests that a back-end has in flight."""


def batches_of(lm: Any, slots: Sequence[Slot]) -> list[Sequence[Slot]]:
    """The requests that are sent together: no more than these can be lost at once.

    All are, if their replies arrive one by one; else those of one task and repeat.
    """
    if arrive_one_by_one(lm):
        return [slots]
    size = _batch_size(lm)
    alike: dict[tuple[str, int], list[Slot]] = defaultdict(list)
    for slot in slots:  # some back-ends apply the first request's task to a whole batch
        alike[slot.task, slot.repeat].append(slot)
    batches: list[Sequence[Slot]] = []
    for group in alike.values():
        for begin in range(0, len(group), size):
            batches.append(group[begin : begin + size])
    return batches


def _batch_size(lm: Any) -> int:
    """The number of requests that are sent to a back-end together."""
    in_flight = 0
    for name in _CONCURRENCY:
        number = getattr(lm, name, None)
        if isinstance(number, int):
            in_flight = max(in_flight, number)
    if in_flight:
        return max(_SMALLEST, _ROUNDS_IN_FLIGHT * in_flight)
    batch_size = getattr(lm, "batch_size", None)
    return batch_size if isinstance(batch_size, int) else 1

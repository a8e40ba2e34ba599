"""Measuring what a run uses: memory of the process, and the work of all processes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medtasks.core.settings import current_settings
from medtasks.runs.reply_files import read_spent
from medtasks.runs.usage import RunUsage, Spent, run_usage

from .sending import Memory


def memory_of(lm: Any) -> Callable[[], Memory] | None:
    """Measures the memory of the process, if the model of ``lm`` is in it; None if no model answers."""
    if not getattr(lm, "runs_model", True):
        return None
    return _memory if _holds_model(lm) else lambda: (None, None)


def _holds_model(lm: Any) -> bool:
    import torch

    held = vars(lm).get("_model", vars(lm).get("model"))
    return bool(getattr(lm, "holds_model", isinstance(held, torch.nn.Module)))


def _memory() -> Memory:
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return sum(torch.cuda.max_memory_allocated(number) for number in range(torch.cuda.device_count())), None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return None, peak if sys.platform == "darwin" else peak * 1024


def work_so_far(folder: Path) -> dict[int, list[Spent]]:
    """What the replies to the command took, with those of earlier, unfinished runs, by process.

    Each process reads its own file, which no other is writing to; the first one also those of processes that no longer
    exist.
    """
    rank, processes = current_settings().rank, current_settings().processes
    spent = read_spent(folder)
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


def gathered_usage(work: Mapping[int, Sequence[Spent]], *, devices: int, counters: Mapping[str, int]) -> RunUsage:
    """The usage of the run, on the first process; others get an empty one.

    Args:
        work: what this process knows of the work behind replies, by process.
        devices: devices of each process.
        counters: the back-end's, of all processes.
    """
    spent = [part for known in gathered(work) for _, part in sorted(known.items())]
    return run_usage(spent, devices=devices, counters=dict(counters))

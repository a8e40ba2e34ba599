"""Measuring what a run uses: memory of the process, and the work of all processes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medtasks.core.settings import current_settings
from medtasks.runs.replies import Answer
from medtasks.runs.reply_files import read_work

from .sending import Memory


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

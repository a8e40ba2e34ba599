"""Peak memory of the process in which a model is."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class PeakMemory(NamedTuple):
    """Peak bytes of this process so far; None for a kind of memory that the model is not in."""

    gpus: int | None
    resident: int | None


def memory_of(lm: Any) -> Callable[[], PeakMemory] | None:
    """A function that measures the memory of the process; None if no model answers.

    It measures nothing if the model of ``lm`` is in another process.
    """
    import torch

    if not getattr(lm, "runs_model", True):
        return None
    model = vars(lm).get("_model", vars(lm).get("model"))
    if getattr(lm, "holds_model", isinstance(model, torch.nn.Module)):
        return _peak_memory
    return _unknown_memory


def _unknown_memory() -> PeakMemory:
    """The peak of a process that does not hold the model."""
    return PeakMemory(None, None)


def _peak_memory() -> PeakMemory:
    """The peak of this process: of its GPUs if it uses any, else its resident memory."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        gpus = range(torch.cuda.device_count())
        return PeakMemory(sum(torch.cuda.max_memory_allocated(gpu) for gpu in gpus), None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # in bytes on macOS, in kilobytes on Linux
    return PeakMemory(None, peak if sys.platform == "darwin" else peak * 1024)

"""The devices on which a model answers, by name."""

from __future__ import annotations

import os
import platform
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from medtasks.core.text import counted


def hardware_of(lm: Any) -> str | None:
    """The devices of this machine that the back-end ``lm`` computes on.

    The GPUs of the process (``2 × NVIDIA H200``), or the processor and the number of its cores that
    the process may use. None if the model is somewhere else: behind an API, in a function, or on
    the nodes of a cluster, whose replicas name their own.
    """
    import torch

    if getattr(lm, "names_devices", False):
        return _gpus(lm.devices) or _processor()
    model = vars(lm).get("_model", vars(lm).get("model"))
    if not getattr(lm, "holds_model", isinstance(model, torch.nn.Module)):
        return None
    return _gpus_of(model) or _processor()


def _gpus_of(model: Any) -> str | None:
    """The GPUs that hold parameters of a model."""
    import torch

    if not isinstance(model, torch.nn.Module):
        return None
    devices = {parameter.device for parameter in model.parameters()}
    numbers = sorted(device.index or 0 for device in devices if device.type == "cuda")
    return _named([torch.cuda.get_device_name(number) for number in numbers])


def _gpus(count: int) -> str | None:
    """The first GPUs of this process."""
    import torch

    count = min(count, torch.cuda.device_count())
    return _named([torch.cuda.get_device_name(number) for number in range(count)])


def _named(names: list[str]) -> str | None:
    """``2 × NVIDIA H200``; None without a GPU."""
    counts = Counter(names)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items())) or None


@cache
def _processor() -> str:
    """The processor, with the number of its cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return f"{_processor_model()} ({counted(cores, 'core')})"


def _processor_model() -> str:
    """The model of the processor, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine() or "CPU"

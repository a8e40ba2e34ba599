"""Measuring what a run uses: memory of the process, energy of the machine, and the work of all processes."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from medtasks.results.asking import Memory
from medtasks.results.usage import RunUsage, Spent, run_usage


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


@contextmanager
def measured_energy(wanted: bool) -> Iterator[Callable[[], float | None]]:
    """Measure energy in this context if ``wanted``; afterwards the function yielded returns kWh, or None without
    `codecarbon`.

    `codecarbon` measures the whole machine, so only one process per machine does. Without access to the counters of the
    hardware, it estimates.
    """
    tracker = _started() if wanted and os.environ.get("LOCAL_RANK", "0") == "0" else None
    found: list[float] = []
    try:
        yield lambda: found[0] if found else None
    finally:
        if tracker is not None:
            tracker.stop()
            data = getattr(tracker, "final_emissions_data", None)
            if data is not None and data.energy_consumed > 0:
                found.append(float(data.energy_consumed))


def _started() -> Any:
    try:
        from codecarbon import OfflineEmissionsTracker
    except ImportError:
        return None
    try:
        # the country is used for emissions, which are not recorded
        tracker = OfflineEmissionsTracker(
            country_iso_code="USA", save_to_file=False, allow_multiple_runs=True, log_level="critical"
        )
        tracker.start()
    except Exception as error:  # reads sensors and drivers; a run does not depend on them
        print(f"medtasks: energy is not measured: {error}", file=sys.stderr, flush=True)
        return None
    return tracker


def gathered_usage(
    own: Sequence[Spent],
    earlier: Mapping[int, Sequence[Spent]],
    energy_kwh: float | None,
    *,
    devices: int,
    counters: Mapping[str, int],
) -> RunUsage:
    """The usage of the run, on the first process; others get an empty one.

    Args:
        own: what the replies to this process took.
        earlier: what the replies of earlier, unfinished runs of the command took, by process.
        energy_kwh: energy measured by this process.
        devices: devices of each process.
        counters: the back-end's, of all processes.
    """
    import torch

    everyone: list[Any] = [(own, energy_kwh)]
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and torch.distributed.is_initialized():
        first = torch.distributed.get_rank() == 0
        everyone = [None] * torch.distributed.get_world_size()
        torch.distributed.gather_object((own, energy_kwh), everyone if first else None, dst=0)
        if not first:
            return RunUsage()
    processes = dict(enumerate(list(one) for one, _ in everyone))
    for rank, spent in earlier.items():
        processes[rank] = [*spent, *processes.get(rank, ())]
    measured = [energy for _, energy in everyone if energy is not None]
    return run_usage(
        list(processes.values()),
        devices=devices,
        energy_kwh=sum(measured) if measured and not earlier else None,
        counters=dict(counters),
    )

"""Measuring what a run uses: memory of the process, energy of the machine, and the work of all processes."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.results.answers import read_spent
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


def work_so_far(folder: Path, rank: int) -> dict[int, list[Spent]]:
    """What the replies to the command took, with those of earlier, unfinished runs, by process.

    Each process reads its own file, which no other is writing to; the first one also those of processes that no longer
    exist.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    found = read_spent(folder)
    return {one: spent for one, spent in found.items() if one == rank or (rank == 0 and one >= processes)}


class OwnPart(NamedTuple):
    """What one process knows: the work behind replies, by process, the energy it measured, and whether it found replies
    of an earlier run."""

    work: Mapping[int, Sequence[Spent]]
    energy_kwh: float | None
    resumed: bool


def gathered_usage(own: OwnPart, *, devices: int, counters: Mapping[str, int]) -> RunUsage:
    """The usage of the run, on the first process; others get an empty one.

    Args:
        own: of this process.
        devices: devices of each process.
        counters: the back-end's, of all processes.
    """
    import torch

    everyone: list[Any] = [own]
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and torch.distributed.is_initialized():
        first = torch.distributed.get_rank() == 0
        everyone = [None] * torch.distributed.get_world_size()
        torch.distributed.gather_object(own, everyone if first else None, dst=0)
        if not first:
            return RunUsage()
    measured = [part.energy_kwh for part in everyone if part.energy_kwh is not None]
    whole = measured and not any(part.resumed for part in everyone)
    return run_usage(
        [spent for part in everyone for _, spent in sorted(part.work.items())],
        devices=devices,
        energy_kwh=sum(measured) if whole else None,
        counters=dict(counters),
    )

"""On what, and how many at once, requests were answered: seconds are compared within a setup."""

from __future__ import annotations

from dataclasses import dataclass

from medtasks.core.text import counted, first_names, shortened
from medtasks.scoring.latency import UNKNOWN_HARDWARE, Latency

_LONGEST_NAME = 60
"""Characters of a device's name, which a submission could make of any length."""
_MOST_NAMES = 3


@dataclass(frozen=True, order=True)
class LatencySetup:
    """How a run's requests to a task or group were answered.

    Args:
        hardware: the devices by name, sorted; `UNKNOWN_HARDWARE` behind an API.
        processes: processes that sent requests, each on such devices.
        in_flight: the most requests that the model worked on at once.
        batched: whether ``all``, ``some`` or ``none`` of the requests were answered together with
            others.
    """

    hardware: tuple[str, ...]
    processes: int
    in_flight: int
    batched: str

    @classmethod
    def of(cls, latency: Latency, processes: int) -> LatencySetup:
        """The setup of a run's requests."""
        batched = "some"
        if latency.batched in (0, latency.measured):
            batched = "all" if latency.batched else "none"
        return cls(tuple(sorted(latency.hardware)), processes, latency.in_flight, batched)

    @property
    def is_known(self) -> bool:
        """Whether all devices are known."""
        return UNKNOWN_HARDWARE not in self.hardware

    def __str__(self) -> str:
        """``1 × NVIDIA H200, up to 8 requests at once``."""
        names = []
        for name in self.hardware:
            is_unknown = name == UNKNOWN_HARDWARE
            names.append("unknown hardware" if is_unknown else shortened(name, _LONGEST_NAME))
        parts = [first_names(names, _MOST_NAMES, " and ")]
        if self.processes > 1:
            parts.append(f"{self.processes:,} processes")
        requests = f"up to {counted(self.in_flight, 'request')} at once"
        if self.in_flight == 1:
            requests = "one request at a time"
        if self.batched == "all":
            requests = f"batches of {requests.removesuffix(' at once')}"
        parts.append(requests)
        if self.batched == "some":
            parts.append("partly in batches")
        return ", ".join(parts)

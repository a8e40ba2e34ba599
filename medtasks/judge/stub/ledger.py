"""What the stub judge remembers of its requests."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Ledger", "Received", "Repeats"]


@dataclass(slots=True)
class Received:
    """One chat request. The API key is not in it, only whether one came."""

    arrived: float  # seconds of time.monotonic()
    digest: str  # sha256 of the body's bytes, hex
    attempt: int  # 1 for the first time that these bytes came since the start or the last reset
    sent: bytes  # kept as bytes: thousands of parsed requests would hold up the server at every garbage collection
    with_key: bool
    outcome: str = "pending"  # then a key of StubJudge.counts

    @property
    def body(self) -> Mapping[str, Any]:
        """The request's JSON, parsed anew."""
        found: Mapping[str, Any] = json.loads(self.sent)
        return found


@dataclass(slots=True)
class Repeats:
    """What happened to earlier attempts of one body."""

    attempts: int = 0
    burst_left: int = 0
    last: str = "ok"


@dataclass
class Ledger:
    """What a reset forgets; a request keeps the ledger it came under, so none spills over a reset."""

    requests: list[Received] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    bodies: defaultdict[str, Repeats] = field(default_factory=lambda: defaultdict(Repeats))
    peak: int = 0
    connections: int = 0

    def finish(self, received: Received, outcome: str) -> None:
        received.outcome = outcome
        self.counts[outcome] += 1

"""The description of one benchmark, shared by the harness glue, the command line and the result folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Benchmark", "Document", "SampleView"]

Document = dict[str, Any]
"""A record as the harness sees it; the keys that all benchmarks share are listed in docs/architecture.md."""


@dataclass(frozen=True)
class SampleView:
    """What breakdowns may look at: the document, the filtered response and its extraction status."""

    document: Mapping[str, Any]
    filtered: str
    status: str


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    ``visible_fields`` are the only document fields that a prompt template can see, so the gold answer cannot
    leak whatever a template says. ``breakdowns`` maps a breakdown's name to the group keys of a sample (one
    sample may stand in several groups, or in none).
    """

    name: str
    title: str
    paper: str
    source: str
    licence: str
    prepare: str
    cluster: str
    visible_fields: frozenset[str]
    breakdowns: Mapping[str, Callable[[SampleView], tuple[str, ...]]]
    options: tuple[str, ...] = ()
    null_option: str | None = None

    @property
    def chance(self) -> float | None:
        """Accuracy of uniform guessing, as a fraction; None for open answers."""
        return 1 / len(self.options) if self.options else None

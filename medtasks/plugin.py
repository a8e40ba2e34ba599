"""The code of a task package; our own benchmarks have the same parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Benchmark
    from medtasks.benchmarks.card import Card
    from medtasks.metrics.base import Metric


@dataclass(frozen=True)
class FilterInfo:
    """A response filter.

    Args:
        kind: the class, with the harness's ``apply(responses, documents)``; task files name it with ``!function``.
        version: changes whenever any response is filtered differently; part of the protocol hash.
        status: returns ``ok`` for a filtered response, or one word for why there is no answer to score.
    """

    kind: type[Any]
    version: str
    status: Callable[[str], str]


@dataclass(frozen=True)
class Plugin:
    """The parts of a package, defined as ``PLUGIN`` in the module that its entry point names."""

    benchmarks: tuple[Benchmark, ...] = ()
    filters: tuple[FilterInfo, ...] = ()
    metrics: tuple[Metric, ...] = ()
    cards: tuple[Card, ...] = ()

"""What a package of tasks brings as code. Our benchmarks are made of the same parts."""

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
    """A filter of responses.

    Args:
        kind: the class, with the harness's ``apply(responses, documents)``; task files name it with ``!function``.
        version: moves whenever it can filter a response otherwise than before; counts in the protocol hash.
        status: says of a filtered response ``ok``, or in a word why there is no answer to score.
    """

    kind: type[Any]
    version: str
    status: Callable[[str], str]


@dataclass(frozen=True)
class Plugin:
    """The code of a package: the module that its entry point names holds one, called ``PLUGIN``."""

    benchmarks: tuple[Benchmark, ...] = ()
    filters: tuple[FilterInfo, ...] = ()
    metrics: tuple[Metric, ...] = ()
    cards: tuple[Card, ...] = ()

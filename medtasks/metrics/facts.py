"""What is known of a metric beside how it is computed: its unit, and how its scores are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["fraction", "points", "seconds", "score", "rank"]


@dataclass(frozen=True)
class MetricFacts:
    """Facts that a metric states in its attribute ``facts``.

    Args:
        unit: the unit of its scores; by default that of the scale in its signature
            (`medtasks.metrics.registry.unit_of`).
        headline: its place in the summary of a run, which shows the metrics with the lowest
            numbers first, and those of other packages last; 0 leaves it out.
        is_signed: whether it is best at 0, so that models cannot be ranked by it.
        is_verdict: whether it scores each answer as right (1) or wrong (0).
        cited: keys of the exports' ``references.bib`` that a methods section cites for it.
    """

    unit: Unit | None = None
    headline: int = 0
    is_signed: bool = False
    is_verdict: bool = False
    cited: tuple[str, ...] = ()


NO_FACTS = MetricFacts()

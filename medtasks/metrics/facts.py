"""What is known of a metric beside how it is computed: its unit, the limits of its scores, and how
they are shown and checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal[
    "fraction", "points", "seconds", "score", "rank", "count", "duration", "rate", "factor"
]
"""``seconds`` are of a stream; a ``duration`` is of computing, in seconds, a ``rate`` is of tokens
by second, and a ``factor`` of seconds of computing by seconds of a stream. Leaderboards alone have
ranks, counts, durations, rates and factors.
"""
Bounds: TypeAlias = "tuple[float, float]"
"""The least and the greatest score, which may be infinite."""

NOT_IN_SUMMARY = 0
"""As ``headline``: the summary leaves the metric out, and shows the others of its task."""


@dataclass(frozen=True)
class MetricFacts:
    """Facts that a metric states in its attribute ``facts``.

    Args:
        unit: the unit of its scores; by default that of the scale in its signature
            (`medtasks.metrics.registry.unit_of`).
        headline: its place in the summary of a run, which shows the metrics with the lowest
            numbers first, then those without a number, then those of other packages;
            `NOT_IN_SUMMARY` leaves it out.
        is_signed: whether it is best at 0, so that models cannot be ranked by it.
        is_verdict: whether it scores each answer as right (1) or wrong (0).
        cited: keys of the exports' ``references.bib`` that a methods section cites for it.
        label: its heading on a leaderboard whose layout states none; by default its name.
        item_bounds: the least and the greatest score of one item, if they are not those of the
            scale that intervals assume (`medtasks.metrics.registry.item_bounds_of`).
        reference_score: the score of a model that always gives the reference answer, if that of two
            equal texts does not show it.
        has_floors: whether it scores selected options, so that chance and the best constant answer
            are shown beside its scores.
        is_timed: whether it scores the times of answers in a stream, which the times in the records
            limit.
    """

    unit: Unit | None = None
    headline: int | None = None
    is_signed: bool = False
    is_verdict: bool = False
    cited: tuple[str, ...] = ()
    label: str = ""
    item_bounds: Bounds | None = None
    reference_score: float | None = None
    has_floors: bool = False
    is_timed: bool = False


NO_FACTS = MetricFacts()

"""Pairs of models on the same items: differences with intervals, tests, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence

from medtasks.metrics.base import Array
from medtasks.runs.table import without_value
from medtasks.stats.paired import PairedDifference, few_clusters, holm

from ..board.board import Pair

SEED = 0
LEVEL = 0.05
"""Two models differ significantly if Holm's p-value is at most this."""
VERDICTS = ("accuracy", "exact_match", "judged_strict")
"""Metrics that score an answer as right or wrong."""


def pair_of(first: str, second: str, metric: str, tables: tuple[Array, Array], found: PairedDifference) -> Pair:
    """The pair for the difference ``found`` between two models with these statistics ``(items, width)`` of the same
    items; Holm's correction comes later."""
    wins, losses = _wins(*tables) if metric in VERDICTS and found.items else (None, None)
    return Pair(
        first=first,
        second=second,
        items=found.items,
        clusters=found.clusters,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        p_holm=None,
        wins=wins,
        losses=losses,
        reason=found.reason,
        standard_error=found.standard_error,
    )


def with_holm(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with p-values corrected over all of them, and with warnings about too few clusters."""
    adjusted = holm([pair.p_value for pair in pairs])
    tests = sum(p is not None for p in adjusted)
    return tuple(
        pair.model_copy(update={"p_holm": p, "warning": few_clusters(pair.clusters, tests)})
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def _wins(first: Array, second: Array) -> tuple[int, int] | tuple[None, None]:
    """Items that only the first and only the second has right; None if an item was asked several times."""
    both = ~(without_value(first) | without_value(second))
    one, other = first[both], second[both]
    for table in (one, other):
        if not ((table[:, 1] == 1).all() and ((table[:, 0] == 0) | (table[:, 0] == 1)).all()):
            return None, None
    surplus = one[:, 0] - other[:, 0]
    return int((surplus > 0).sum()), int((surplus < 0).sum())

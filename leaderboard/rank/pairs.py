"""Differences between two models as a board states them, corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from medtasks.metrics.base import Array
from medtasks.metrics.registry import facts_of
from medtasks.scoring.columns import without_value
from medtasks.stats import paired
from medtasks.stats.cautions import comparison_warning
from medtasks.stats.holm import holm

from ..schema.model_rankings import Pair


def pair_of(
    first: str,
    second: str,
    metric: str,
    tables: tuple[Array, Array],
    difference: paired.PairedDifference,
) -> Pair:
    """The pair of two models, before Holm's correction (`with_holm`).

    ``tables`` are their statistics ``(items, width)`` of the same items. For verdicts, the pair
    counts the items that only one model has right, unless an item was asked several times.
    """
    wins = losses = None
    if facts_of(metric).is_verdict and difference.items:
        counts = _discordant_counts(*tables)
        if counts is not None:
            wins, losses = counts
    return Pair(
        first=first,
        second=second,
        items=difference.items,
        clusters=difference.clusters,
        difference=difference.difference,
        low=difference.low,
        high=difference.high,
        p_value=difference.p_value,
        p_holm=None,
        wins=wins,
        losses=losses,
        reason=difference.reason,
        standard_error=difference.standard_error,
        cautions=difference.cautions,
    )


def _discordant_counts(first: Array, second: Array) -> tuple[int, int] | None:
    """How many items only the first and only the second model has right.

    None unless every item was asked once and is either right or wrong.
    """
    in_both = ~(without_value(first) | without_value(second))
    first_right, first_asked = first[in_both].T
    second_right, second_asked = second[in_both].T
    asked_once = (first_asked == 1).all() and (second_asked == 1).all()
    if not asked_once or not np.isin((first_right, second_right), (0, 1)).all():
        return None
    wins = int((first_right > second_right).sum())
    losses = int((first_right < second_right).sum())
    return wins, losses


def with_holm(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with p-values corrected over all of them, and with their warnings."""
    adjusted = holm([pair.p_value for pair in pairs])
    tests = sum(p is not None for p in adjusted)
    corrected = []
    for pair, p in zip(pairs, adjusted, strict=True):
        warning = comparison_warning(pair.clusters, pair.cautions, tests)
        corrected.append(pair.model_copy(update={"p_holm": p, "warning": warning}))
    return tuple(corrected)

"""The rate of one kind of error, or of its opposite: how often it occurred among the cases in which it could."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from medtasks.metrics.item_metrics import ItemMetric


class ErrorRate(ItemMetric):
    """Occurrences divided by cases, 0..1. Statistics of an item: ``(occurrences, cases)``.

    Cases depend on the gold answers alone, so that all models have the same ones.

    Args:
        name: the column name.
        label: the heading on a leaderboard.
        cases: what is counted in the denominator, one hyphenated word; part of the signature.
        harms: whether the error could harm a patient if nobody noticed it.
        choices: other choices that can change the score, for the signature.
        higher_is_better: True for the rate of a correct outcome, such as sensitivity.
    """

    bounds = (0.0, 1.0)

    def __init__(
        self,
        name: str,
        label: str,
        *,
        cases: str,
        harms: bool = False,
        choices: Mapping[str, str] = MappingProxyType({}),
        higher_is_better: bool = False,
    ) -> None:
        super().__init__(name, {"cases": cases, **choices}, higher_is_better=higher_is_better)
        self.signature = self.signature.replace("mean:items", "ratio:of-sums", 1)
        self.label = label
        self.harms = harms


NO_OPTION = ErrorRate("no_option_rate", "No single option", cases="questions")
"""Responses to multiple-choice questions without exactly one selectable option."""

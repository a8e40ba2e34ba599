"""Exact match: equality of the whole answer after stripping and lower-casing."""

from __future__ import annotations

from medtasks.metrics.base import Array, MeanMetric, mean_statistics, sign

__all__ = ["ExactMatch"]


class ExactMatch(MeanMetric):
    """Share of predictions equal to their reference, lower-cased and stripped (0..1).

    Kvasir-VQA-x1, table 6. Inner spacing and punctuation count; two empty strings are equal.

    >>> ExactMatch().statistics(" Two polyps.", "two polyps.").tolist()
    [1.0, 1.0]
    """

    name = "exact_match"
    signature = sign(name, case="lower", strip="yes")

    def statistics(self, prediction: str, reference: str) -> Array:
        """``(1 if equal else 0, 1)``."""
        return mean_statistics(float(prediction.strip().lower() == reference.strip().lower()))

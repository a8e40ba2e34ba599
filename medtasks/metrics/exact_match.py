"""Exact match of an answer and its reference."""

from __future__ import annotations

from medtasks.metrics.base import Array, MeanMetric, Pairs, mean_table, sign
from medtasks.metrics.facts import MetricFacts


class ExactMatch(MeanMetric):
    """Share of predictions equal to their reference, lower-cased and stripped (0..1), as the
    scripts behind table 6 of arXiv 2506.09958 compute it. Inner spacing and punctuation count; two
    empty strings are equal.

    >>> ExactMatch().statistics(" Two polyps.", "two polyps.").tolist()
    [1.0, 1.0]
    """

    name = "exact_match"
    facts = MetricFacts(headline=30, is_verdict=True)
    signature = sign(name, case="lower", strip="yes")

    def table(self, pairs: Pairs) -> Array:
        """``(1, 1)`` for each pair of equal texts, ``(0, 1)`` for any other."""
        is_equal = []
        for prediction, reference in pairs:
            is_equal.append(prediction.strip().lower() == reference.strip().lower())
        return mean_table(is_equal)


METRICS = (ExactMatch(),)

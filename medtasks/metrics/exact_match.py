"""Exact match: equality of the whole answer after stripping and lower-casing."""

from __future__ import annotations

from medtasks.metrics._ngrams import Pairs
from medtasks.metrics.base import Array, BatchMetric, MeanMetric, mean_table, sign


class ExactMatch(BatchMetric, MeanMetric):
    """Share of predictions equal to their reference, lower-cased and stripped (0..1).

    As the scripts behind table 6 of arXiv 2506.09958 compute it; the table itself leaves it out. Inner spacing and
    punctuation count; two empty strings are equal.

    >>> ExactMatch().statistics(" Two polyps.", "two polyps.").tolist()
    [1.0, 1.0]
    """

    name = "exact_match"
    signature = sign(name, case="lower", strip="yes")

    def table(self, pairs: Pairs) -> Array:
        """``(1 if equal else 0, 1)``."""
        return mean_table([one.strip().lower() == other.strip().lower() for one, other in pairs])

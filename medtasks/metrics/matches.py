"""Answers that are right or wrong: option letters, and whole texts."""

from __future__ import annotations

import numpy as np

from medtasks.metrics._ngrams import Pairs
from medtasks.metrics.base import Array, BatchMetric, MeanMetric, mean_table, sign


class Accuracy(MeanMetric):
    """Share of samples whose extracted letter is the reference letter (0..1).

    The prediction is a filter's output: a letter, or a status marker such as ``[none]``. A marker never equals a
    letter, so a response without exactly one selectable option is scored as wrong.

    >>> Accuracy().statistics("C", "C").tolist(), Accuracy().statistics("[multiple]", "C").tolist()
    ([1.0, 1.0], [0.0, 1.0])
    """

    name = "accuracy"
    signature = sign(name, compare="letter", unparsed="wrong")

    def statistics(self, prediction: str, reference: str) -> Array:
        """``(1 if the letters are the same else 0, 1)``."""
        return np.array([float(prediction == reference), 1.0])


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

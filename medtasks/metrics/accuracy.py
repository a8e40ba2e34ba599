"""Accuracy of multiple-choice answers."""

from __future__ import annotations

import numpy as np

from medtasks.metrics.base import Array, MeanMetric, sign
from medtasks.metrics.facts import MetricFacts


class Accuracy(MeanMetric):
    """Share of samples whose extracted letter or label is the reference (0..1).

    The prediction is a filter's output: a letter, or a status marker such as ``[none]``. A marker
    never equals a letter, so a response without exactly one selectable option is scored as wrong.

    >>> [Accuracy().statistics(said, "C").tolist() for said in ("C", "c", "[multiple]")]
    [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """

    name = "accuracy"
    facts = MetricFacts(headline=1, is_verdict=True, has_floors=True)
    signature = sign(name, compare="letter", unparsed="wrong")

    def statistics(self, prediction: str, reference: str) -> Array:
        """``(1 if the letters are the same else 0, 1)``."""
        return np.array([float(prediction == reference), 1.0])


METRICS = (Accuracy(),)

"""Multiple-choice accuracy on extracted option letters."""

from __future__ import annotations

from medtasks.metrics.base import Array, MeanMetric, mean_statistics, sign


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
        return mean_statistics(float(prediction == reference))

"""Exact match the way the hub's ``exact_match`` metric computes it: the mean of an array
comparison.
"""

import datasets
import evaluate
import numpy as np


class ExactMatch(evaluate.Metric):
    """Share of equal strings, 0..1; ``ignore_case`` lower-cases both sides."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references, ignore_case=False):
        predictions, references = np.asarray(predictions), np.asarray(references)
        if ignore_case:
            predictions, references = np.char.lower(predictions), np.char.lower(references)
        return {"exact_match": np.mean(predictions == references)}

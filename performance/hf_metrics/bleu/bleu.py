"""BLEU the way the hub's ``bleu`` metric computes it: 13a tokens, classical corpus formula,
unsmoothed.
"""

import math
from collections import Counter

import datasets
import evaluate
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a


def ngrams(tokens, max_order):
    """Counts of all n-grams up to ``max_order``, as tuples."""
    return Counter(
        tuple(tokens[i : i + order])
        for order in range(1, max_order + 1)
        for i in range(len(tokens) - order + 1)
    )


class Bleu(evaluate.Metric):
    """Corpus BLEU, 0..1."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references, max_order=4):
        tokenizer = Tokenizer13a()
        matched, possible = [0] * max_order, [0] * max_order
        prediction_length = reference_length = 0
        for prediction, reference in zip(predictions, references, strict=True):
            ours, theirs = tokenizer(prediction).split(), tokenizer(reference).split()
            prediction_length += len(ours)
            reference_length += len(theirs)
            for ngram, count in (ngrams(ours, max_order) & ngrams(theirs, max_order)).items():
                matched[len(ngram) - 1] += count
            for order in range(1, max_order + 1):
                possible[order - 1] += max(len(ours) - order + 1, 0)
        if min(matched) == 0:
            return {"bleu": 0.0}
        precisions = [hits / total for hits, total in zip(matched, possible, strict=True)]
        mean = math.exp(sum(math.log(precision) for precision in precisions) / max_order)
        ratio = prediction_length / reference_length
        return {"bleu": mean * (1.0 if ratio > 1 else math.exp(1 - 1 / ratio))}

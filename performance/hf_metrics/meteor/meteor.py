"""METEOR the way the hub's ``meteor`` metric computes it: the mean of NLTK's score on its word
tokens.

Where NLTK's punkt data are absent, texts are tokenized as one line (the hub's module would download
them).
"""

import datasets
import evaluate
import numpy as np
from nltk.tokenize import sent_tokenize, word_tokenize
from nltk.translate import meteor_score


class Meteor(evaluate.Metric):
    """Mean of ``single_meteor_score`` with NLTK's default parameters."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references, alpha=0.9, beta=3, gamma=0.5):
        try:
            sent_tokenize("One.")
            one_line = False
        except LookupError:
            one_line = True

        def tokens(text):
            return word_tokenize(text, preserve_line=one_line)

        scores = [
            meteor_score.single_meteor_score(
                tokens(ref), tokens(pred), alpha=alpha, beta=beta, gamma=gamma
            )
            for ref, pred in zip(references, predictions, strict=True)
        ]
        return {"meteor": np.mean(scores)}

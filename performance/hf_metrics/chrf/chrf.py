"""chrF the way the hub's ``chrf`` metric computes it: sacrebleu's corpus score, word order 0 unless
asked.
"""

import datasets
import evaluate
from sacrebleu import CHRF


class ChrF(evaluate.Metric):
    """Corpus chrF, 0..100; ``word_order=2`` is chrF++."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references, char_order=6, word_order=0, beta=2):
        scorer = CHRF(char_order, word_order, beta)
        return {"score": scorer.corpus_score(predictions, [references]).score}

"""ROUGE the way the hub's ``rouge`` metric computes it: rouge-score per pair, then its
aggregator.
"""

import datasets
import evaluate
from rouge_score import rouge_scorer, scoring


class Rouge(evaluate.Metric):
    """F1 per ROUGE type; ``use_aggregator=False`` gives the list of per-pair values."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(
        self,
        predictions,
        references,
        rouge_types=("rouge1", "rouge2", "rougeL"),
        use_aggregator=True,
    ):
        scorer = rouge_scorer.RougeScorer(list(rouge_types), use_stemmer=False)
        scores = [
            scorer.score(ref, pred) for ref, pred in zip(references, predictions, strict=True)
        ]
        if not use_aggregator:
            return {name: [score[name].fmeasure for score in scores] for name in rouge_types}
        aggregator = scoring.BootstrapAggregator()
        for score in scores:
            aggregator.add_scores(score)
        return {name: value.mid.fmeasure for name, value in aggregator.aggregate().items()}

"""The metrics that benchmarks share, by name."""

from __future__ import annotations

from medtasks.metrics.accuracy import Accuracy
from medtasks.metrics.base import Metric
from medtasks.metrics.bleu import Bleu
from medtasks.metrics.chrf import Chrf
from medtasks.metrics.confidence import CONFIDENCE_METRICS
from medtasks.metrics.error_rate import NO_OPTION
from medtasks.metrics.exact_match import ExactMatch
from medtasks.metrics.item_metrics import ITEM_METRICS
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.option_order import ORDER_METRICS
from medtasks.metrics.prompt_sensitivity import PROMPT_SCORES
from medtasks.metrics.rouge import Rouge

LEXICAL: tuple[str, ...] = ("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match")
"""The text-overlap metrics, in table order."""

_ALL: tuple[Metric, ...] = (
    Rouge("rouge1"),
    Rouge("rouge2"),
    Rouge("rougeL"),
    Meteor(),
    Chrf("chrf", word_order=0),
    Chrf("chrf++", word_order=2),
    Bleu(),
    ExactMatch(),
    Accuracy(),
    *LEARNED.values(),
    *ITEM_METRICS,
    *ORDER_METRICS,
    *PROMPT_SCORES,
    NO_OPTION,
    *CONFIDENCE_METRICS,
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Our metrics by name; one instance each, since metrics are stateless."""

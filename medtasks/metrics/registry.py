"""The metrics by name."""

from __future__ import annotations

from medtasks.errors import UsageError
from medtasks.metrics.accuracy import Accuracy
from medtasks.metrics.base import Metric
from medtasks.metrics.bleu import Bleu
from medtasks.metrics.chrf import Chrf
from medtasks.metrics.exact_match import ExactMatch
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.rouge import Rouge

__all__ = ["LEXICAL", "get_metric"]

LEXICAL: tuple[str, ...] = ("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match")
"""The text-overlap metrics, in the order in which tables show them."""

_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Rouge("rouge1"),
        Rouge("rouge2"),
        Rouge("rougeL"),
        Meteor(),
        Chrf("chrf", word_order=0),
        Chrf("chrf++", word_order=2),
        Bleu(),
        ExactMatch(),
        Accuracy(),
    )
}


def get_metric(name: str) -> Metric:
    """The metric of that name; one shared instance, since metrics hold no state.

    Raises:
        UsageError: there is no such metric.
    """
    try:
        return _METRICS[name]
    except KeyError:
        raise UsageError(f"metric {name!r} is unknown; choose from {', '.join(_METRICS)}") from None

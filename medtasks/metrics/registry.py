"""The metrics by name."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from medtasks.errors import UsageError
from medtasks.metrics.accuracy import Accuracy
from medtasks.metrics.base import Metric
from medtasks.metrics.bleu import Bleu
from medtasks.metrics.chrf import Chrf
from medtasks.metrics.cider import Cider
from medtasks.metrics.exact_match import ExactMatch
from medtasks.metrics.item_metrics import ITEM_METRICS, DimensionMean, OverallTable4
from medtasks.metrics.judged import JudgedMean
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.rouge import Rouge
from medtasks.packages import OURS

if TYPE_CHECKING:
    from medtasks.judge.rubric import Rubric

__all__ = ["ACCURACY_DIMENSION_MEAN", "LEXICAL", "OVERALL_TABLE4", "get_metric", "is_ours", "known_without_packages"]

LEXICAL: tuple[str, ...] = ("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match")
"""The text-overlap metrics, in the order in which tables show them."""

ACCURACY_DIMENSION_MEAN = DimensionMean("accuracy_dimension_mean", ("sod", "fdd", "su", "tp", "cr", "ltg", "msi"))
"""Med-CMR's unweighted mean of its seven dimensions' accuracies, beside the pooled accuracy."""

OVERALL_TABLE4 = OverallTable4()
"""MedStreamBench's overall as its table 4 combines it."""

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
    Cider(),
    *LEARNED.values(),
    *ITEM_METRICS,
    ACCURACY_DIMENSION_MEAN,
    OVERALL_TABLE4,
)
_METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def get_metric(name: str) -> Metric:
    """The metric of that name; one shared instance, since metrics hold no state.

    Raises:
        UsageError: there is no such metric.
    """
    found = _METRICS.get(name) or _judged().get(name)
    if found is not None:
        return found
    from medtasks.plugin import all_metrics, metric_left_out

    others = all_metrics()
    if name in others:
        return others[name]
    why = metric_left_out(name)
    if why is not None:
        raise UsageError(f"metric {name!r} is unknown: {why}")
    raise UsageError(f"metric {name!r} is unknown; choose from {', '.join({**_METRICS, **_judged(), **others})}")


def known_without_packages() -> dict[str, str]:
    """Scores whose names no package's own metric may have, with who has them: our metrics, and what rubrics give."""
    from medtasks.judge.rubric import rubric_owners

    owners = rubric_owners()
    judged = {name: owners[rubric.name] for rubric in _rubrics() for name in rubric.metrics}
    return {**judged, **dict.fromkeys(_METRICS, OURS)}


def is_ours(name: str) -> bool:
    """Whether medtasks itself brings the metric, or the rubric that gives the score."""
    return known_without_packages().get(name) == OURS


def _rubrics() -> tuple[Rubric, ...]:
    from medtasks.judge.rubric import usable_rubrics  # rubrics read templates: not needed to count words

    return usable_rubrics()


@functools.cache
def _judged() -> dict[str, JudgedMean]:
    """The scores that rubrics name."""
    return {name: JudgedMean(name, top=rubric.best) for rubric in _rubrics() for name in rubric.metrics}

"""The metrics that benchmarks share, by name, and the names that no other metric may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks.metrics.accuracy import Accuracy
from medtasks.metrics.base import Metric
from medtasks.metrics.bleu import Bleu
from medtasks.metrics.chrf import Chrf
from medtasks.metrics.exact_match import ExactMatch
from medtasks.metrics.item_metrics import ITEM_METRICS
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.rouge import Rouge
from medtasks.packages import OURS

if TYPE_CHECKING:
    from medtasks.judge.scales import Rubric

LEXICAL: tuple[str, ...] = ("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match")
"""The text-overlap metrics, in the order in which tables show them."""

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
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Our metrics by name; one instance each, since metrics hold no state."""


def known_without_packages() -> dict[str, str]:
    """Scores whose names no package's own metric may have, with who has them: our metrics, and what rubrics give."""
    from medtasks.judge.rubric import rubric_owners

    owners = rubric_owners()
    judged = {name: owners[rubric.name] for rubric in rubrics() for name in rubric.metrics}
    return {**judged, **dict.fromkeys(METRICS, OURS)}


def rubrics() -> tuple[Rubric, ...]:
    """The rubrics that can be read, which name scores of their own."""
    from medtasks.judge.rubric import usable_rubrics  # rubrics read templates: not needed to count words

    return usable_rubrics()

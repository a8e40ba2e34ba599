"""Metrics by name: those shared by all benchmarks, the scores of rubrics, and those of other packages."""

from __future__ import annotations

import functools

from medtasks.errors import UsageError
from medtasks.metrics.base import Metric
from medtasks.metrics.judged import JudgedMean
from medtasks.metrics.registry import METRICS
from medtasks.packages import OURS
from medtasks.registry import all_metrics, metric_left_out, metric_owner
from medtasks.rubrics.rubric import score_owners, usable_rubrics


def get_metric(name: str) -> Metric:
    """The metric of that name; one shared instance, since metrics are stateless.

    Raises:
        UsageError: there is no such metric.
    """
    found = METRICS.get(name) or _judged().get(name)
    if found is not None:
        return found
    others = all_metrics()
    if name in others:
        return others[name]
    why = metric_left_out(name)
    if why is not None:
        raise UsageError(f"metric {name!r} is unknown: {why}")
    raise UsageError(f"metric {name!r} is unknown; choose from {', '.join({**METRICS, **_judged(), **others})}")


def is_ours(name: str) -> bool:
    """Whether the metric, or the rubric that gives the score, is part of medtasks."""
    return name in METRICS or (score_owners().get(name) or metric_owner(name)) == OURS


@functools.cache
def _judged() -> dict[str, JudgedMean]:
    """The scores that rubrics name."""
    return {name: JudgedMean(name, top=rubric.best) for rubric in usable_rubrics() for name in rubric.metrics}

"""A metric by its name: ours, one that a rubric gives, or another package's."""

from __future__ import annotations

import functools

from medtasks.errors import UsageError
from medtasks.metrics.base import Metric
from medtasks.metrics.judged import JudgedMean
from medtasks.metrics.registry import METRICS, rubrics
from medtasks.registry import all_metrics, metric_left_out


def get_metric(name: str) -> Metric:
    """The metric of that name; one shared instance, since metrics hold no state.

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


@functools.cache
def _judged() -> dict[str, JudgedMean]:
    """The scores that rubrics name."""
    return {name: JudgedMean(name, top=rubric.best) for rubric in rubrics() for name in rubric.metrics}

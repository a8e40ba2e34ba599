"""Metrics by name: those shared by all benchmarks, the scores of rubrics, those of other packages, and kinds of error
that task files declare."""

from __future__ import annotations

import functools

from medtasks.errors import UsageError
from medtasks.metrics.base import Metric
from medtasks.metrics.error_rate import ErrorRate, declared_rate
from medtasks.metrics.judged import JudgedMean
from medtasks.metrics.registry import METRICS
from medtasks.packages import OURS
from medtasks.registry import all_metrics, metric_left_out, metric_owner
from medtasks.rubrics.rubric import score_owners, usable_rubrics
from medtasks.spec import load_specs


def get_metric(name: str) -> Metric:
    """The metric of that name; one shared instance, since metrics are stateless.

    Raises:
        UsageError: there is no such metric.
    """
    found = registered_metric(name)
    if found is not None:
        return found
    if name in _declared():
        return _declared()[name]
    why = metric_left_out(name)
    if why is not None:
        raise UsageError(f"metric {name!r} is unknown: {why}")
    raise UsageError(
        f"metric {name!r} is unknown; choose from {', '.join({**METRICS, **_judged(), **all_metrics(), **_declared()})}"
    )


def registered_metric(name: str) -> Metric | None:
    """The metric of that name, unless a task file declares it; None if there is none."""
    return METRICS.get(name) or _judged().get(name) or all_metrics().get(name)


def is_ours(name: str) -> bool:
    """Whether the metric, or the rubric that gives the score, is part of medtasks."""
    return name in METRICS or (score_owners().get(name) or metric_owner(name)) == OURS


@functools.cache
def _judged() -> dict[str, JudgedMean]:
    """The scores that rubrics name."""
    return {name: JudgedMean(name, top=rubric.best) for rubric in usable_rubrics() for name in rubric.metrics}


@functools.cache
def _declared() -> dict[str, ErrorRate]:
    """The kinds of error that task files declare; of two with one name the first (`name_problem` reports the other)."""
    kinds = [kind for spec in load_specs().values() for kind in spec.metadata.errors]
    return {kind.name: declared_rate(kind) for kind in reversed(kinds)}

"""The totals of a rubric: the scores of its aspects, weighted, capped and summed."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Cap, Rubric


def total(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> dict[str, float]:
    """The totals of one response's ``scores``, with the value of each aspect (caps applied).

    ``weighted_total``: ``total`` = 100 · Σ w s / Σ w max, and each aspect as 100 · s / max.
    ``mean_of_maximum``: ``total`` = Σ s / Σ max in 0..1, and each aspect as s / max.
    ``per_aspect``: each aspect as s / max, ``strict`` (1 if all have their maximum) and ``partial``
    (Σ s / Σ max). ``scores`` are one number within the scale for each aspect
    (:func:`medtasks.scoring.panels.combine`).
    """
    counted = dict(scores)
    if rubric.cap is not None:
        counted[rubric.cap.aspect] = _capped(rubric.cap, scores)
    is_weighted = rubric.aggregation == "weighted_total"
    unit = 100 if is_weighted else 1
    values: dict[str, float] = {}
    points: list[float] = []
    most_points: list[float] = []
    all_at_maximum = True
    for aspect in aspects_of(rubric, document):
        weight = aspect.weight if is_weighted else 1
        values[aspect.name] = unit * counted[aspect.name] / aspect.maximum
        points.append(weight * counted[aspect.name])
        most_points.append(weight * aspect.maximum)
        all_at_maximum &= counted[aspect.name] == aspect.maximum
    share = unit * fsum(points) / fsum(most_points)
    if rubric.aggregation != "per_aspect":
        return {**values, "total": share}
    return {**values, "strict": float(all_at_maximum), "partial": share}


def _capped(cap: Cap, scores: Mapping[str, float]) -> float:
    """The score of the capped aspect, under the first step that applies."""
    score = scores[cap.aspect]
    for step in cap.steps:
        if scores[cap.by] <= step.at_most:
            return min(score, step.limit)
    return score

"""Learned metrics of scored samples, computed with their models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import first_line
from medtasks.metrics.registry import learned_metric
from medtasks.runs.samples import Sample


class LearnedValue(NamedTuple):
    """A learned metric of one sample: its statistics, None if the metric was not computed, and its
    score, None if the sample alone has none.
    """

    statistics: tuple[float, ...] | None = None
    score: float | None = None


def with_learned_metrics(
    spec: TaskSpec, samples: Sequence[Sample], problems: list[str]
) -> list[Sample]:
    """``samples`` with the task's learned metrics; one whose weights are missing has no statistics.
    If a model fails, a message is added to ``problems``.
    """
    values_by_metric: dict[str, list[LearnedValue]] = {}
    for metric in spec.learned:
        try:
            values_by_metric[metric] = _learned_values(metric, samples)
        except Exception as error:  # any model on any device: memory, drivers, weights
            values_by_metric[metric] = [LearnedValue()] * len(samples)
            problems.append(
                f"{spec.name}: {metric} could not be computed ({first_line(error)}); "
                "`medtasks score` tries again."
            )
    if not values_by_metric:
        return list(samples)
    completed = []
    for number, sample in enumerate(samples):
        scores = dict(sample.scores)
        statistics = dict(sample.statistics)
        for metric, values in values_by_metric.items():
            value = values[number]
            scores[metric] = value.score
            if value.statistics is not None:
                statistics[metric] = value.statistics
        update = {"scores": scores, "statistics": statistics}
        completed.append(sample.model_copy(update=update))
    return completed


def _learned_values(name: str, samples: Sequence[Sample]) -> list[LearnedValue]:
    """The metric of the samples; nothing without a response, or without the weights."""
    values = [LearnedValue()] * len(samples)
    metric = learned_metric(name)
    if metric.unavailable() is not None:
        return values
    answered = []
    pairs = []
    for number, sample in enumerate(samples):
        if sample.status != FAILED:
            answered.append(number)
            pairs.append((sample.filtered, sample.target))
    table = metric.table(tuple(pairs))
    scores = metric.score(table).tolist()
    for number, row, score in zip(answered, table.tolist(), scores, strict=True):
        if not math.isnan(row[0]):
            values[number] = LearnedValue(tuple(row), None if math.isnan(score) else score)
    return values


def has_models(spec: TaskSpec) -> bool:
    """Whether a model scores the task's samples: a score depends a little on the others in its
    batch.
    """
    return any(learned_metric(name).unavailable() is None for name in spec.learned)

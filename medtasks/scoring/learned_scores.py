"""Learned metrics of scored samples, computed with their models."""

from __future__ import annotations

from collections.abc import Sequence

from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import first_line
from medtasks.metrics.learned import LEARNED
from medtasks.runs.samples import Sample


def with_learned_metrics(
    spec: TaskSpec, samples: Sequence[Sample], problems: list[str]
) -> list[Sample]:
    """``samples`` with the task's learned metrics; one whose weights are missing has no statistics.
    If a model fails, a message is added to ``problems``.
    """
    scores_by_metric: dict[str, list[float | None]] = {}
    for metric in spec.metadata.learned:
        try:
            scores_by_metric[metric] = _learned_scores(metric, samples)
        except Exception as error:  # any model on any device: memory, drivers, weights
            scores_by_metric[metric] = [None] * len(samples)
            problems.append(
                f"{spec.name}: {metric} could not be computed ({first_line(error)}); "
                "`medtasks score` tries again."
            )
    if not scores_by_metric:
        return list(samples)
    completed = []
    for number, sample in enumerate(samples):
        scores = dict(sample.scores)
        statistics = dict(sample.statistics)
        for metric, learned_scores in scores_by_metric.items():
            score = learned_scores[number]
            scores[metric] = score
            if score is not None:
                statistics[metric] = (score, 1.0)
        update = {"scores": scores, "statistics": statistics}
        completed.append(sample.model_copy(update=update))
    return completed


def _learned_scores(metric: str, samples: Sequence[Sample]) -> list[float | None]:
    """The metric's scores of the samples; None without a response, or without the weights."""
    scores: list[float | None] = [None] * len(samples)
    if LEARNED[metric].unavailable() is not None:
        return scores
    answered = []
    pairs = []
    for number, sample in enumerate(samples):
        if sample.status != FAILED:
            answered.append(number)
            pairs.append((sample.filtered, sample.target))
    learned_scores = LEARNED[metric].scores(pairs).tolist()
    for number, score in zip(answered, learned_scores, strict=True):
        scores[number] = score
    return scores


def has_models(spec: TaskSpec) -> bool:
    """Whether a model scores the task's samples: a score depends a little on the others in its
    batch.
    """
    return any(LEARNED[name].unavailable() is None for name in spec.metadata.learned)

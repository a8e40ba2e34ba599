"""Learned metrics, computed for all samples of a task at once because the models score in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import first_line
from medtasks.metrics.learned import LEARNED
from medtasks.runs.samples import Sample


def with_learned_metrics(spec: TaskSpec, samples: Sequence[Sample], problems: list[str]) -> list[Sample]:
    """``samples`` with the task's learned metrics.

    A metric whose weights are missing has no statistics. If a model fails, a message is added to ``problems`` and the
    other scores are kept.
    """
    values = {name: _values(spec.name, name, samples, problems) for name in spec.metadata.learned}
    if not values:
        return list(samples)
    return [
        _with_scores(sample, {name: found.get(number) for name, found in values.items()})
        for number, sample in enumerate(samples)
    ]


def has_models(spec: TaskSpec) -> bool:
    """Whether a model scores the task's samples; a score depends a little on the others in its batch."""
    return any(LEARNED[name].unavailable() is None for name in spec.metadata.learned)


def _values(task: str, name: str, samples: Sequence[Sample], problems: list[str]) -> dict[int, float]:
    """The scores of the samples that have a response, by position; empty if they cannot be computed."""
    metric = LEARNED[name]
    if metric.unavailable() is not None:
        return {}
    answered = [number for number, sample in enumerate(samples) if sample.status != FAILED]
    try:
        scores = metric.scores([(samples[number].filtered, samples[number].target) for number in answered])
    except Exception as error:  # any model on any device: memory, drivers, weights
        problems.append(f"{task}: {name} could not be computed ({first_line(error)}); `medtasks score` tries again.")
        return {}
    return dict(zip(answered, scores.tolist(), strict=True))


def _with_scores(sample: Sample, values: Mapping[str, float | None]) -> Sample:
    statistics = {name: (value, 1.0) for name, value in values.items() if value is not None}
    return sample.model_copy(
        update={"scores": {**sample.scores, **values}, "statistics": {**sample.statistics, **statistics}}
    )

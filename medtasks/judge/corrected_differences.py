"""Differences between the corrected scores of two runs over the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from medtasks.core.schema import Frozen
from medtasks.judge.corrected_scores import CorrectedRun
from medtasks.judge.enough_labels import why_too_few_labels
from medtasks.judge.labelled_answers import (
    LabelledAnswer,
    as_arrays,
    cluster_numbers,
    with_metric,
)
from medtasks.stats.corrected_interval import corrected_difference
from medtasks.stats.holm import holm
from medtasks.stats.prediction_powered import corrected_mean


class CorrectedPair(Frozen):
    """``difference`` = ``first`` - ``second``, what people would give to all answers of two runs to
    the same questions.

    ``interval`` and ``p_value`` are by Student's t with the clusters' joint variance; ``p_holm`` is
    corrected over all pairs that were compared together. ``labels`` counts the labelled answers of
    each run, ``answers`` those that both runs have, and ``clusters`` theirs. ``reason`` says why
    there is no difference.
    """

    task: str
    metric: str
    first: float | None = None
    second: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    p_holm: float | None = None
    labels: tuple[int, int]
    answers: int
    clusters: int
    reason: str | None = None


def corrected_differences(
    first: CorrectedRun,
    second: CorrectedRun,
    *,
    task: str | None = None,
    metric: str | None = None,
) -> tuple[CorrectedPair, ...]:
    """The differences in every corrected score that both runs may have.

    Args:
        first: the labelled run A.
        second: the labelled run B.
        task: only this task or group.
        metric: only this metric.
    """
    pairs = []
    for name, by_metric in first.scores.items():
        for metric_name in by_metric:
            is_shared = metric_name in second.scores.get(name, {})
            is_asked = task in (None, name) and metric in (None, metric_name)
            if is_shared and is_asked:
                pairs.append(corrected_pair(first, second, name, metric_name))
    return with_holm([pair for pair in pairs if pair.answers])


def with_holm(pairs: Sequence[CorrectedPair]) -> tuple[CorrectedPair, ...]:
    """The pairs with p-values corrected over all of them."""
    adjusted = holm([pair.p_value for pair in pairs])
    corrected = []
    for pair, p_value in zip(pairs, adjusted, strict=True):
        corrected.append(pair.model_copy(update={"p_holm": p_value}))
    return tuple(corrected)


def corrected_pair(
    first: CorrectedRun, second: CorrectedRun, name: str, metric: str
) -> CorrectedPair:
    """The difference in one metric of a task or group that both runs have."""
    first_answers = _answers(first, name, metric)
    second_answers = _answers(second, name, metric)
    units = {answer.unit for answer in first_answers} & {answer.unit for answer in second_answers}
    shared = []
    for answers in (first_answers, second_answers):
        shared.append([answer for answer in answers if answer.unit in units])
    clusters = cluster_numbers(*shared)
    width = first.rubric_of(metric).best
    arrays = [as_arrays(answers, metric, width, clusters) for answers in shared]
    without_difference = CorrectedPair(
        task=name,
        metric=metric,
        labels=(arrays[0].labels, arrays[1].labels),
        answers=len(units),
        clusters=len(clusters),
    )
    for side, run, side_arrays in zip(("A", "B"), (first, second), arrays, strict=True):
        reason = run.scores[name][metric].reason or why_too_few_labels(side_arrays)
        if reason is not None:
            return without_difference.model_copy(update={"reason": f"{side}: {reason}"})
    means = [corrected_mean(side_arrays) for side_arrays in arrays]
    result = corrected_difference(*means)
    values = np.clip([mean.value for mean in means], 0.0, width).tolist()
    return without_difference.model_copy(
        update={
            "first": values[0],
            "second": values[1],
            "difference": result.difference,
            "interval": (result.low, result.high),
            "p_value": result.p_value,
        }
    )


def _answers(run: CorrectedRun, name: str, metric: str) -> list[LabelledAnswer]:
    """The answers of a run that a metric of a task or group counts."""
    under_rubric = run.answers[run.rubric_of(metric).name]
    answers: list[LabelledAnswer] = []
    for task in run.members[name]:
        answers += with_metric(under_rubric.answers[task], metric)
    return answers

"""Scores of questions that are asked with several paraphrased prompts (`medtasks.benchmarks.paraphrases`).

That one prompt per task is not enough, and the scores of the mean and the best prompt, are from Mizrahi et al. 2024
(arXiv 2401.00595). Sclar et al. 2024 (arXiv 2310.11324) report the spread over prompt formats.

Sampling noise alone makes the best of several equal prompts look better than their mean, and their scores spread. Both
biases go away if one half of the data measures what the other half has found, so the clusters are split in two halves,
by a hash of their names. As each cluster stays in its half, this holds in every bootstrap resample as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from medtasks.metrics.base import Array, sign
from medtasks.metrics.item_metrics import ItemMetric, OverItems, means, sum_in_order
from medtasks.task_model import MOST_PROMPTS, PROMPT_METRICS, prompt_metric

WORST, BEST, SPREAD, AGREEMENT = PROMPT_METRICS
_SCORE = {"score": "first-metric-of-the-task"}


def half_of(cluster: str) -> int:
    """The half that a cluster is in, 0 or 1."""
    return hashlib.sha256(cluster.encode()).digest()[0] % 2


class _OverPrompts(OverItems):
    """Base of the scores over prompts; statistics: by half and prompt, ``(sum of values, items)``."""

    width = 2 * MOST_PROMPTS * 2
    rule: str

    def __init__(self, name: str, *, higher_is_better: bool = True) -> None:
        self.name = name
        self.higher_is_better = higher_is_better
        self.signature = sign(name, **_SCORE, rule=self.rule, halves="sha256-of-cluster")

    def item_statistics(self, values: Sequence[Sequence[float]], half: int) -> Array:
        """Statistics ``(width,)`` of one question: ``(value, 1)`` for each prompt, or ``(0, 0)`` where none applies.

        ``half`` is that of the question's cluster (:func:`half_of`).
        """
        rows = np.zeros((2, MOST_PROMPTS, 2))
        rows[half, : len(values)] = values
        return rows.reshape(self.width)

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., width)``; NaN if a half has no items, as with a single cluster."""
        totals = np.asarray(totals, dtype=np.float64)
        halves = totals.reshape(*totals.shape[:-1], 2, MOST_PROMPTS, 2)
        return self._of_halves(halves[..., 0], halves[..., 1])

    def _of_halves(self, sums: Array, counts: Array) -> Array:
        """Scores of the sums and counts ``(..., 2, prompts)`` in both halves; counts are 0 for prompts not asked."""
        raise NotImplementedError


class ChosenPrompt(_OverPrompts):
    """The score of the best (or worst) prompt: chosen on each half of the clusters, scored on the items of the other.

    Prompts with the same score in a half are averaged.

    >>> metric = ChosenPrompt("best_prompt", best=True)
    >>> rows = [metric.item_statistics([(1, 1), (0, 1)], half) for half in (0, 1)]
    >>> float(metric.score(np.sum(rows, axis=0)))
    1.0
    """

    rule = "chosen-on-one-half,scored-on-the-other"

    def __init__(self, name: str, *, best: bool) -> None:
        super().__init__(name)
        self._sign = 1 if best else -1

    def _of_halves(self, sums: Array, counts: Array) -> Array:
        scores = means(sums, counts)
        ordered = np.where(np.isnan(scores), -np.inf, self._sign * scores)
        chosen = (ordered == ordered.max(axis=-1, keepdims=True)) & (counts > 0)
        weights = (chosen / np.maximum(chosen.sum(axis=-1, keepdims=True), 1))[..., ::-1, :]
        return means(*(sum_in_order(sum_in_order(weights * one)) for one in (sums, counts)))


class PromptSpread(_OverPrompts):
    """Standard deviation of the prompts' scores, without the part that sampling noise adds.

    The variance is estimated by the covariance, over the k prompts, of their scores in one half of the clusters with
    those in the other (divided by k - 1). Its expectation is the variance of the prompts' true scores. A negative
    estimate counts as 0.

    >>> metric = PromptSpread("prompt_spread", higher_is_better=False)
    >>> rows = [metric.item_statistics([(1, 1), (0, 1)], half) for half in (0, 1)]
    >>> round(float(metric.score(np.sum(rows, axis=0))), 4)  # the standard deviation of 1 and 0
    0.7071
    """

    rule = "standard-deviation,covariance-of-halves"

    def _of_halves(self, sums: Array, counts: Array) -> Array:
        asked = (counts[..., 0, :] > 0) & (counts[..., 1, :] > 0)
        prompts = asked.sum(axis=-1)
        scores = np.where(asked[..., None, :], means(sums, counts), 0.0)
        centres = sum_in_order(scores) / np.maximum(prompts, 1)[..., None]
        deviations = np.where(asked[..., None, :], scores - centres[..., None], 0.0)
        covered = sum_in_order(deviations[..., 0, :] * deviations[..., 1, :])
        return np.sqrt(np.maximum(means(covered, np.maximum(prompts - 1.0, 0.0)), 0.0))


PROMPT_SCORES: tuple[ItemMetric | _OverPrompts, ...] = (
    ChosenPrompt(WORST, best=False),
    ChosenPrompt(BEST, best=True),
    PromptSpread(SPREAD, higher_is_better=False),
    ItemMetric(AGREEMENT, {"same": "option-under-every-prompt", "unparsed": "different"}),
    *(ItemMetric(prompt_metric(number), _SCORE) for number in range(1, MOST_PROMPTS + 1)),
)
"""The scores that `medtasks.task_model.prompt_metrics` names."""

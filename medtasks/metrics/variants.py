"""Scores of questions that are asked several times, with their options in several orders or with
several paraphrased prompts (`medtasks.benchmarks.variants`; docs/metrics.md has the definitions,
and their sources).

The clusters are split in two halves, by a hash of their names: what one half of the data has found
(the best prompt, a spread), the other half measures, so that sampling noise makes neither look
larger than it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial

import numpy as np

from medtasks.catalog.task_model import MOST_PROMPTS, ORDER_METRICS, PROMPT_METRICS, prompt_metric
from medtasks.metrics.base import Array, means
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.item_metrics import ItemScore, item_mean, sum_in_order

POSITIONS = 26
"""The largest number of options."""
CIRCULAR, CONSISTENCY, PREFERENCE = ORDER_METRICS
WORST, BEST, SPREAD, AGREEMENT = PROMPT_METRICS
_SCORE = {"score": "first-metric-of-the-task"}


def letter_statistics(answers: Sequence[tuple[int, int]], shown_letters: Sequence[int]) -> Array:
    """Counts of one question's letters ``(3 * 26,)``, which `letter_counts` takes apart again.

    They are, for each of 26 letters, the number of answers that chose it, the number expected of a
    model that prefers no letter, and the number of answers in which it was correct.

    Args:
        answers: the positions (0 is A) of the chosen and the correct letter, for each rotation of
            the question with a selected option.
        shown_letters: the positions of the letters that the question has.
    """
    times_chosen = np.zeros(POSITIONS)
    times_expected = np.zeros(POSITIONS)
    times_correct = np.zeros(POSITIONS)
    for chosen, correct in answers:
        times_chosen[chosen] += 1
        times_correct[correct] += 1
    times_expected[shown_letters] = len(answers) / len(shown_letters)
    return np.concatenate([times_chosen, times_expected, times_correct])


def letter_counts(statistics: Array) -> tuple[Array, Array, Array]:
    """How often each letter was chosen, expected and correct, each ``(..., 26)``.

    ``statistics`` ``(..., 3 * 26)`` are those of `letter_statistics`, or sums of them.
    """
    by_count = statistics.reshape(*statistics.shape[:-1], 3, POSITIONS)
    return by_count[..., 0, :], by_count[..., 1, :], by_count[..., 2, :]


def preference_of_letter(statistics: Array, position: int) -> Array:
    """A mean's statistics ``(..., 2)``: how many more answers chose a letter than expected, and all
    answers.

    >>> statistics = letter_statistics([(0, place) for place in range(4)], range(4))
    >>> preference_of_letter(statistics, 1).tolist()
    [-1.0, 4.0]
    """
    chosen, expected, _ = letter_counts(statistics)
    surplus = chosen[..., position] - expected[..., position]
    return np.stack([surplus, sum_in_order(chosen)], axis=-1)


def letter_preference(totals: Array) -> Array:
    """How far the letters chosen are from those of a model that prefers none: total variation
    distance, 0..1, ``½ Σ |chosen - expected| / answers`` over the letters.

    Over all rotations of a question each option is shown at each letter: a model that reads the
    options chooses each of its k letters in 1/k of its answers. Responses without exactly one
    selectable option are left out.

    >>> float(letter_preference(letter_statistics([(0, place) for place in range(4)], range(4))))
    0.75
    """
    chosen, expected, _ = letter_counts(totals)
    half_distance = sum_in_order(np.abs(chosen - expected)) / 2
    return means(half_distance, sum_in_order(chosen))


ORDER_SCORES: tuple[ItemScore, ...] = (
    item_mean(
        CIRCULAR, {"right": "in-every-rotation", "unparsed": "wrong"}, facts=MetricFacts(headline=3)
    ),
    item_mean(
        CONSISTENCY,
        {"same": "original-option-in-every-rotation", "unparsed": "inconsistent"},
        facts=MetricFacts(headline=4),
    ),
    ItemScore(
        PREFERENCE,
        3 * POSITIONS,
        letter_preference,
        {"distance": "total-variation", "expected": "uniform-over-options", "unparsed": "left-out"},
        higher_is_better=False,
        is_distance=True,
        facts=MetricFacts(headline=5),
    ),
)


def half_of(cluster: str) -> int:
    """The half to which a cluster belongs, 0 or 1: the parity of a byte of its name's hash."""
    return hashlib.sha256(cluster.encode()).digest()[0] % 2


def prompt_statistics(values: Sequence[Sequence[float]], half: int) -> Array:
    """A sum and a count of one question for each half and prompt, flat.

    Before it is flattened the array is ``(halves, prompts, 2)``. ``values`` are ``(value, 1)`` for
    each prompt, and become those of ``half``, to which the question's cluster belongs; all others
    are ``(0, 0)``.
    """
    sums_and_counts = np.zeros((2, MOST_PROMPTS, 2))
    sums_and_counts[half, : len(values)] = values
    return sums_and_counts.reshape(-1)


def _halves(totals: Array) -> tuple[Array, Array]:
    """Sums and counts ``(..., 2, prompts)`` in both halves; counts are 0 for prompts not asked."""
    halves = totals.reshape(*totals.shape[:-1], 2, MOST_PROMPTS, 2)
    return halves[..., 0], halves[..., 1]


def chosen_prompt(totals: Array, *, best: bool) -> Array:
    """The score of the best (or worst) prompt: chosen on each half of the clusters, scored on the
    items of the other.

    Prompts with the same score in a half are averaged; NaN if a half has no items, as with a single
    cluster.

    >>> rows = [prompt_statistics([(1, 1), (0, 1)], half) for half in (0, 1)]
    >>> float(chosen_prompt(np.sum(rows, axis=0), best=True))
    1.0
    """
    sums, counts = _halves(totals)
    scores = means(sums, counts)
    merit = np.where(np.isnan(scores), -np.inf, scores if best else -scores)
    is_chosen = (merit == merit.max(axis=-1, keepdims=True)) & (counts > 0)
    number_chosen = is_chosen.sum(axis=-1, keepdims=True)
    shares = is_chosen / np.maximum(number_chosen, 1)  # equal prompts share their half's choice
    weights = shares[..., ::-1, :]  # each half is scored by what was chosen on the other
    weighted_sum = sum_in_order(sum_in_order(weights * sums))
    weighted_count = sum_in_order(sum_in_order(weights * counts))
    return means(weighted_sum, weighted_count)


def prompt_spread(totals: Array) -> Array:
    """Standard deviation of the prompts' scores, without the part that sampling noise adds.

    The variance is estimated by the covariance, over the k prompts, of their scores in one half of
    the clusters with those in the other (divided by k - 1). A negative estimate counts as 0.

    >>> rows = [prompt_statistics([(1, 1), (0, 1)], half) for half in (0, 1)]
    >>> round(float(prompt_spread(np.sum(rows, axis=0))), 4)  # the standard deviation of 1 and 0
    0.7071
    """
    sums, counts = _halves(totals)
    in_both_halves = (counts[..., 0, :] > 0) & (counts[..., 1, :] > 0)
    prompts = in_both_halves.sum(axis=-1)
    is_used = in_both_halves[..., None, :]  # for each half alike
    scores = np.where(is_used, means(sums, counts), 0.0)
    mean_scores = sum_in_order(scores) / np.maximum(prompts, 1)[..., None]
    deviations = np.where(is_used, scores - mean_scores[..., None], 0.0)
    products = sum_in_order(deviations[..., 0, :] * deviations[..., 1, :])
    covariance = means(products, np.maximum(prompts - 1.0, 0.0))
    return np.sqrt(np.maximum(covariance, 0.0))


_WIDTH = 2 * MOST_PROMPTS * 2
_HALVES = {"halves": "sha256-of-cluster"}
_CHOSEN = {**_SCORE, "rule": "chosen-on-one-half,scored-on-the-other", **_HALVES}
_COVARIANCE = {**_SCORE, "rule": "standard-deviation,covariance-of-halves", **_HALVES}
_ONE_PROMPT = [
    item_mean(prompt_metric(number), _SCORE, facts=MetricFacts(headline=NOT_IN_SUMMARY))
    for number in range(1, MOST_PROMPTS + 1)
]
PROMPT_SCORES: tuple[ItemScore, ...] = (
    ItemScore(
        WORST, _WIDTH, partial(chosen_prompt, best=False), _CHOSEN, facts=MetricFacts(headline=6)
    ),
    ItemScore(
        BEST, _WIDTH, partial(chosen_prompt, best=True), _CHOSEN, facts=MetricFacts(headline=7)
    ),
    ItemScore(
        SPREAD,
        _WIDTH,
        prompt_spread,
        _COVARIANCE,
        higher_is_better=False,
        is_distance=True,
        facts=MetricFacts(headline=8),
    ),
    item_mean(
        AGREEMENT,
        {"same": "option-under-every-prompt", "unparsed": "different"},
        facts=MetricFacts(headline=9),
    ),
    *_ONE_PROMPT,
)


METRICS = (*ORDER_SCORES, *PROMPT_SCORES)

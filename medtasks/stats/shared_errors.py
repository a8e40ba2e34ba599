"""Errors that models share: how many independent models their votes are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.votes import Votes

USUAL_WRONG_RATE = 0.02
"""The share of wrong gold answers where nothing is known yet."""

_LEAST_SHARED = 10
"""Questions on which two models are wrong, from which on their agreement is looked at."""
_NOISE = 2.0
"""Standard errors by which two models must agree more often than others to share a vote."""


def excess_agreement(votes: Votes) -> Array:
    """How far each pair of models ``(models, models)`` agrees on wrong answers more often than the
    median pair, as a share of the way to 1; a model with itself 1.

    The agreement of two models is the share of questions on which they give the same wrong answer,
    among those on which both are wrong. Of questions with two options it says nothing, so these are
    left out. Good models also agree where the gold answer is wrong and they are right: this many
    questions are subtracted, as if `USUAL_WRONG_RATE` of the gold answers were wrong. An excess
    within two standard errors, or over fewer than 10 questions, counts as 0.
    """
    shared = _shared_errors(votes)
    excess = np.eye(votes.models)
    first, second = np.triu_indices(votes.models, 1)
    is_compared = shared.both[first, second] >= _LEAST_SHARED
    first, second = first[is_compared], second[is_compared]
    if not len(first):
        return excess
    both = shared.both[first, second]
    rates = shared.same[first, second] / both
    usual = float(np.median(rates))
    if usual >= 1:
        return excess
    variance = np.maximum(usual * (1 - usual), 1 / both) / both
    variance += shared.by_gold[first, second] / both**2
    is_excess = rates > usual + _NOISE * np.sqrt(variance)
    pair_excess = np.where(is_excess, (rates - usual) / (1 - usual), 0.0)
    excess[first, second] = pair_excess
    excess[second, first] = pair_excess
    return excess


def vote_weights(excess: Array) -> Array:
    """The share of a vote ``(models,)`` that each model has: 1 divided by its summed excess
    agreement with all models. Two models that always err together have half a vote each.

    >>> vote_weights(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])).tolist()
    [0.5, 0.5, 1.0]
    """
    weights: Array = 1 / excess.sum(axis=1)
    return weights


def effective_models(excess: Array, common: float) -> float:
    """The number of independent models that the models are worth: ``n² / Σ r``, with ``r`` the
    dependence of each pair (Kish 1965, for weights of 1).

    ``common`` is the dependence of all pairs, to which ``excess`` adds. Eight models that share
    half of their errors are worth fewer than two:

    >>> round(effective_models(np.eye(8), 0.5), 3)
    1.778
    """
    dependence = common + (1 - common) * excess
    return float(len(excess) ** 2 / dependence.sum())


@dataclass(frozen=True)
class _SharedErrors:
    """Counts of questions by pair of models ``(models, models)``: on which ``both`` are wrong, and
    on which they give the ``same`` wrong answer; without those that are expected ``by_gold``,
    because the gold answer is wrong.
    """

    both: Array
    same: Array
    by_gold: Array


def _shared_errors(votes: Votes) -> _SharedErrors:
    """The errors that models share on questions with more than two options."""
    several = votes.of(np.flatnonzero(votes.options > 2))
    is_wrong = several.is_vote & ~several.is_right
    wrong = is_wrong.astype(np.float64)
    both = wrong.T @ wrong
    same = np.zeros_like(both)
    for option in range(several.most_options):
        gave = (is_wrong & (several.chosen == option)).astype(np.float64)
        same += gave.T @ gave
    is_vote = several.is_vote.astype(np.float64)
    accuracy = several.is_right.sum(axis=0) / np.maximum(is_vote.sum(axis=0), 1)
    by_gold = USUAL_WRONG_RATE * (is_vote.T @ is_vote) * np.multiply.outer(accuracy, accuracy)
    by_gold = np.minimum(by_gold, same)
    return _SharedErrors(both - by_gold, same - by_gold, by_gold)

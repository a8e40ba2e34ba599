"""The likelihood of models' votes, if each option of a question were the true one.

A model chooses the true option with probability ``sigmoid(ability + ease)``. The ease of a question
is normal with mean 0 and standard deviation ``spread`` (Whitehill et al. 2009, without their
differences between models): what is hard for one model is hard for the others. A model that misses
the true option chooses one of the others, whose attraction differs between questions as a symmetric
Dirichlet distribution: the smaller its ``concentration``, the more often models that are wrong
choose the same option.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.votes import Integers, Votes, cluster_sums

INDEPENDENT = np.inf
"""The concentration at which wrong options are chosen independently."""

_NODES = 15
"""Of the quadrature over eases."""
_PROBIT_SCALE = (16 * np.sqrt(3) / (15 * np.pi)) ** 2
"""Squared scale at which a normal distribution approximates the logistic one (Johnson, Kotz and
Balakrishnan 1995)."""
_LEAST_ACCURACY = 0.01
"""Accuracies are taken as no closer to 0 and 1 than this."""


@dataclass(frozen=True)
class VoteModel:
    """The parameters of the votes.

    ``wrong_rate`` is the share of wrong gold answers, ``spread`` and ``concentration`` are as in
    the module's docstring, and ``weights`` ``(models,)`` are the models' shares of a vote.
    """

    wrong_rate: float
    spread: float
    concentration: float
    weights: Array


def log_likelihoods(votes: Votes, model: VoteModel) -> Array:
    """The log-likelihood ``(questions, options)`` of the votes on each question, if each option
    were the true one; minus infinity for options that the question does not have.
    """
    abilities = abilities_elsewhere(votes, model)
    is_option = np.arange(votes.most_options)[None, :] < votes.options[:, None]
    likelihoods = _of_right_and_wrong(votes, abilities, model)
    likelihoods += _of_wrong_options(votes, model)
    return np.where(is_option, likelihoods, -np.inf)


def abilities_elsewhere(votes: Votes, model: VoteModel) -> Array:
    """The ability ``(questions, models)`` of each model by its answers to the questions of other
    clusters, of which ``wrong_rate`` have a wrong gold answer.
    """
    is_vote = votes.is_vote.astype(np.float64)
    is_right = votes.is_right.astype(np.float64)
    answered = is_vote.sum(axis=0) - cluster_sums(is_vote, votes.clusters)[votes.clusters]
    right = is_right.sum(axis=0) - cluster_sums(is_right, votes.clusters)[votes.clusters]
    against_gold = (right + 1) / (answered + 2)
    # a model that errs may choose the gold answer that is wrong
    by_chance = model.wrong_rate / (votes.options.mean() - 1)
    accuracy = (against_gold - by_chance) / (1 - model.wrong_rate - by_chance)
    bounded = np.clip(accuracy, _LEAST_ACCURACY, 1 - _LEAST_ACCURACY)
    # so that the mean of sigmoid(ability + ease) is this accuracy
    widening = np.sqrt(1 + _PROBIT_SCALE * model.spread**2)
    ability: Array = (np.log(bounded) - np.log1p(-bounded)) * widening
    return ability


def _of_right_and_wrong(votes: Votes, abilities: Array, model: VoteModel) -> Array:
    """The log-likelihood ``(questions, options)`` of which models are right and which are wrong."""
    vote_weights = votes.is_vote * model.weights
    chose = [votes.chosen == option for option in range(votes.most_options)]
    eases, shares = _eases(model.spread)
    by_ease = np.zeros((len(eases), votes.questions, votes.most_options))
    for number, ease in enumerate(eases):
        logits = abilities + ease
        log_wrong = -(vote_weights * np.logaddexp(0.0, logits)).sum(axis=1)
        weighted_logits = vote_weights * logits
        for option, is_chosen in enumerate(chose):
            right_instead = (is_chosen * weighted_logits).sum(axis=1)
            by_ease[number, :, option] = log_wrong + right_instead
    largest = by_ease.max(axis=0)
    mean = np.tensordot(shares, np.exp(by_ease - largest), axes=1)
    log_mean: Array = largest + np.log(mean)
    return log_mean


def _eases(spread: float) -> tuple[Array, Array]:
    """Eases and their probabilities, by Gauss–Hermite quadrature."""
    if spread == 0:
        return np.zeros(1), np.ones(1)
    nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes * spread, shares / shares.sum()


def _of_wrong_options(votes: Votes, model: VoteModel) -> Array:
    """The log-likelihood ``(questions, options)`` of which other options the wrong votes chose."""
    columns = []
    for option in range(votes.most_options):
        columns.append(((votes.chosen == option) * model.weights).sum(axis=1))
    counts = np.column_stack(columns)
    wrong_counts = counts.sum(axis=1, keepdims=True) - counts
    other_options = votes.options[:, None] - 1
    if model.concentration == INDEPENDENT:
        independent: Array = -wrong_counts * np.log(other_options)
        return independent
    return _dirichlet_multinomial(counts, wrong_counts, other_options, model.concentration)


def _dirichlet_multinomial(
    counts: Array, wrong_counts: Array, other_options: Integers, concentration: float
) -> Array:
    """The log-likelihood of ``counts`` over all options but one, whose sum is ``wrong_counts``."""
    from scipy.special import gammaln  # slow to import

    per_option = gammaln(concentration + counts) - gammaln(concentration)
    over_others = per_option.sum(axis=1, keepdims=True) - per_option
    whole = concentration * other_options
    log_likelihood: Array = over_others + gammaln(whole) - gammaln(whole + wrong_counts)
    return log_likelihood


def common_dependence(votes: Votes, concentration: float) -> float:
    """How much more often two wrong models agree than by chance, as a share of the way to 1, at the
    questions' mean number of options; 0 where all questions have two.
    """
    wrong_options = float(votes.options.mean()) - 1
    if concentration == INDEPENDENT or wrong_options <= 1:
        return 0.0
    agreement = (concentration + 1) / (wrong_options * concentration + 1)
    by_chance = 1 / wrong_options
    return (agreement - by_chance) / (1 - by_chance)

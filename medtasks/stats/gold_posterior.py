"""How probable it is that a gold answer is wrong, from the options that several models chose.

The model is that of Dawid and Skene (1979), with one accuracy per model and with errors that models
share (`medtasks.stats.vote_likelihood`): a gold answer is wrong with probability ``wrong_rate``,
and any other option may then be the true one. Models that agree on wrong answers even more often
than the others share a vote (`medtasks.stats.shared_errors`). A model's accuracy is that on the
questions of other clusters; all other parameters are those with the largest marginal likelihood.
docs/audit.md has what this finds in simulations, and what it cannot find.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.shared_errors import (
    USUAL_WRONG_RATE,
    effective_models,
    excess_agreement,
    vote_weights,
)
from medtasks.stats.vote_likelihood import (
    INDEPENDENT,
    VoteModel,
    common_dependence,
    log_likelihoods,
)
from medtasks.stats.votes import Integers, Votes

LEAST_MODELS = 3
"""Fewer models cannot outvote a gold answer: if two disagree with it, so may either of them."""
LISTED_ERROR = 0.1
"""The expected share of right gold answers among the listed ones."""
LEAST_POSTERIOR = 0.5
"""A gold answer that is more probably right than wrong is never listed."""

_SPREADS = (0.0, 0.75, 1.5, 2.5, 4.0)
_CONCENTRATIONS = (INDEPENDENT, 5.0, 2.0, 1.0, 0.5, 0.25, 0.1)
_MOST_WRONG = 0.1
"""Where more gold answers seem wrong, it is likelier that models share their errors."""
_PRIOR_QUESTIONS = 50.0
"""Questions that the prior of the wrong rate counts as much as."""
_FITTED_QUESTIONS = 4000
"""The parameters are estimated from so many questions: more would hardly change them."""
_STEPS = 50
"""Of the iteration that finds the wrong rate."""


@dataclass(frozen=True)
class GoldPosterior:
    """The probability ``wrong`` ``(questions,)`` that each gold answer is wrong; NaN where fewer
    than `LEAST_MODELS` models voted.

    ``rival`` ``(questions,)`` is the most probable other option, ``model`` the fitted model, and
    ``effective`` the number of independent models that the models are worth.
    """

    wrong: Array
    rival: Integers
    model: VoteModel
    effective: float

    @property
    def is_decisive(self) -> bool:
        """Whether the models are worth enough independent ones to outvote a gold answer."""
        return self.effective >= LEAST_MODELS - 1e-9


def gold_posterior(votes: Votes) -> GoldPosterior:
    """The probability that each gold answer is wrong.

    Raises:
        ValueError: there are fewer than `LEAST_MODELS` models, or no question.
    """
    if votes.models < LEAST_MODELS or not votes.questions:
        raise ValueError(
            f"found votes of shape {votes.chosen.shape}, expected at least 1 question and "
            f"{LEAST_MODELS} models"
        )
    excess = excess_agreement(votes)
    model = _fitted_model(votes, vote_weights(excess))
    probabilities = _option_probabilities(votes, model)
    rows = np.arange(votes.questions)
    wrong = 1 - probabilities[rows, votes.gold]
    wrong[votes.is_vote.sum(axis=1) < LEAST_MODELS] = np.nan
    probabilities[rows, votes.gold] = -1.0
    common = common_dependence(votes, model.concentration)
    rival = probabilities.argmax(axis=1)
    return GoldPosterior(wrong, rival, model, effective_models(excess, common))


def doubtful(wrong: Array, listed_error: float = LISTED_ERROR) -> Integers:
    """The questions to list, the most doubtful first: as many as possible while the mean
    probability that their gold answers are right is at most ``listed_error``.

    >>> doubtful(np.array([0.99, 0.2, 0.97, 0.6, np.nan])).tolist()
    [0, 2]
    """
    comparable = np.nan_to_num(wrong, nan=-1.0)
    order = np.argsort(-comparable, kind="stable")
    probable = order[comparable[order] >= LEAST_POSTERIOR]
    mean_right = np.cumsum(1 - wrong[probable]) / np.arange(1, len(probable) + 1)
    count = np.count_nonzero(mean_right <= listed_error)
    return probable[:count]


def _option_probabilities(votes: Votes, model: VoteModel) -> Array:
    """The probability ``(questions, options)`` that each option is the true one."""
    likelihoods = log_likelihoods(votes, model)
    log_prior = np.tile(
        np.log(model.wrong_rate / (votes.options - 1))[:, None], likelihoods.shape[1]
    )
    log_prior[np.arange(votes.questions), votes.gold] = np.log1p(-model.wrong_rate)
    joint = likelihoods + log_prior
    scaled = np.exp(joint - joint.max(axis=1, keepdims=True))
    probabilities: Array = scaled / scaled.sum(axis=1, keepdims=True)
    return probabilities


@dataclass(frozen=True)
class _Fit:
    """A model and the logarithm of its posterior density, up to a constant."""

    model: VoteModel
    log_density: float


def _fitted_model(votes: Votes, weights: Array) -> VoteModel:
    """The model with the largest marginal likelihood times the prior of its wrong rate."""
    count = min(votes.questions, _FITTED_QUESTIONS)
    rows = np.linspace(0, votes.questions - 1, count).astype(np.int64)
    fitted_votes = votes.of(rows)
    best: _Fit | None = None
    for spread, concentration in product(_SPREADS, _CONCENTRATIONS):
        start = VoteModel(USUAL_WRONG_RATE, spread, concentration, weights)
        fit = _with_wrong_rate(fitted_votes, start)
        if best is None or fit.log_density > best.log_density:
            best = fit
    assert best is not None
    return best.model


def _with_wrong_rate(votes: Votes, start: VoteModel) -> _Fit:
    """The model with the most probable wrong rate, by expectation and maximisation."""
    likelihoods = log_likelihoods(votes, start)
    rows = np.arange(votes.questions)
    if_right = likelihoods[rows, votes.gold].copy()
    likelihoods[rows, votes.gold] = -np.inf
    if_wrong = np.logaddexp.reduce(likelihoods, axis=1) - np.log(votes.options - 1)
    prior_wrong = USUAL_WRONG_RATE * _PRIOR_QUESTIONS
    prior_right = _PRIOR_QUESTIONS - prior_wrong
    rate = start.wrong_rate
    for _ in range(_STEPS):
        log_odds = if_wrong - if_right + np.log(rate) - np.log1p(-rate)
        wrong = np.exp(-np.logaddexp(0.0, -log_odds)).sum()
        rate = float((wrong + prior_wrong) / (votes.questions + _PRIOR_QUESTIONS))
        rate = min(rate, _MOST_WRONG)
    marginal = np.logaddexp(np.log1p(-rate) + if_right, np.log(rate) + if_wrong).sum()
    log_prior = prior_right * np.log1p(-rate) + prior_wrong * np.log(rate)
    return _Fit(replace(start, wrong_rate=rate), float(marginal + log_prior))

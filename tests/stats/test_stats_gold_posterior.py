"""The posterior of wrong gold answers, against direct computation and in simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from medtasks.stats.gold_posterior import doubtful, gold_posterior
from medtasks.stats.shared_errors import effective_models, excess_agreement, vote_weights
from medtasks.stats.vote_likelihood import (
    INDEPENDENT,
    VoteModel,
    abilities_elsewhere,
    common_dependence,
    log_likelihoods,
)
from medtasks.stats.votes import NO_VOTE, Votes
from performance.wrong_golds import Simulation, found


def small_votes() -> Votes:
    """Four questions in three clusters, with three and four options."""
    return Votes(
        chosen=np.array([[0, 0, 1], [1, 2, 2], [3, 3, NO_VOTE], [0, 1, 1]]),
        gold=np.array([0, 2, 3, 0]),
        options=np.array([3, 3, 4, 4]),
        clusters=np.array([0, 0, 1, 2]),
    )


def urn_probability(chosen: list[int], options: list[int], concentration: float) -> float:
    """The probability of these choices one after the other from a Pólya urn."""
    probability = 1.0
    for number, option in enumerate(chosen):
        earlier = chosen[:number].count(option)
        whole = concentration * len(options) + number
        probability *= (concentration + earlier) / whole
    return probability


def which_are_right(
    ease: float, abilities: np.ndarray, chosen: dict[int, int], truth: int
) -> float:
    """The probability that the models that are right are right, and the others wrong."""
    product = 1.0
    for voter, option in chosen.items():
        right = 1 / (1 + math.exp(-abilities[voter] - ease))
        product *= right if option == truth else 1 - right
    return product


def weighted(
    ease: float, abilities: np.ndarray, chosen: dict[int, int], truth: int, spread: float
) -> float:
    """The same, times the density of the ease."""
    return which_are_right(ease, abilities, chosen, truth) * float(norm.pdf(ease, scale=spread))


@pytest.mark.parametrize("concentration", [INDEPENDENT, 0.7])
@pytest.mark.parametrize("spread", [0.0, 1.2])
def test_likelihoods_are_those_of_the_model(spread: float, concentration: float) -> None:
    votes = small_votes()
    model = VoteModel(0.05, spread, concentration, np.ones(3))
    abilities = abilities_elsewhere(votes, model)
    likelihoods = log_likelihoods(votes, model)
    for question in range(4):
        options = list(range(votes.options[question]))
        chosen = {m: int(c) for m, c in enumerate(votes.chosen[question]) if c != NO_VOTE}
        for truth in options:
            wrong = [option for option in chosen.values() if option != truth]

            if spread:
                right_and_wrong = quad(
                    weighted, -12, 12, (abilities[question], chosen, truth, spread)
                )[0]
            else:
                right_and_wrong = which_are_right(0.0, abilities[question], chosen, truth)
            distractors = [option for option in options if option != truth]
            if concentration == INDEPENDENT:
                which = (1 / len(distractors)) ** len(wrong)
            else:
                which = urn_probability(wrong, distractors, concentration)
            expected = math.log(right_and_wrong * which)
            assert likelihoods[question, truth] == pytest.approx(expected, abs=2e-4)
    assert likelihoods[0, 3] == -math.inf


def test_abilities_leave_out_the_questions_own_cluster() -> None:
    votes = small_votes()
    model = VoteModel(0.0, 0.0, INDEPENDENT, np.ones(3))
    abilities = abilities_elsewhere(votes, model)
    # the first model is right on question 2 and 3, which are in other clusters than question 0
    assert abilities[0, 0] == pytest.approx(math.log((2 + 1) / (0 + 1)))
    # the second one is right on 0, 1 and wrong on 3
    assert abilities[2, 1] == pytest.approx(math.log((2 + 1) / (1 + 1)))
    # the third one voted on 0, 1 and 3 alone: with 2 in another cluster, all of them count
    assert abilities[2, 2] == pytest.approx(math.log((1 + 1) / (2 + 1)))


def test_a_question_whose_votes_agree_on_another_option_is_most_probably_wrong() -> None:
    simulation = Simulation(questions=400, seed=5)
    votes, is_wrong = simulation.votes()
    posterior = gold_posterior(votes)
    assert posterior.wrong[is_wrong].mean() > 0.8
    assert posterior.wrong[~is_wrong].mean() < 0.01
    listed = doubtful(posterior.wrong)
    truth = simulation.truth()
    right_rival = posterior.rival[listed] == truth[listed]
    assert right_rival[is_wrong[listed]].mean() > 0.9
    assert (1 - posterior.wrong[listed]).mean() <= 0.1


def test_a_question_with_two_votes_has_no_posterior() -> None:
    votes, _ = Simulation(questions=60, models=3, seed=1).votes()
    chosen = votes.chosen.copy()
    chosen[7, 0] = NO_VOTE
    posterior = gold_posterior(Votes(chosen, votes.gold, votes.options, votes.clusters))
    assert np.flatnonzero(np.isnan(posterior.wrong)).tolist() == [7]
    assert 7 not in doubtful(posterior.wrong)


def test_two_models_are_refused() -> None:
    votes, _ = Simulation(questions=20, models=2).votes()
    with pytest.raises(ValueError, match="at least 1 question and 3 models"):
        gold_posterior(votes)


def test_a_copy_of_a_model_has_half_a_vote() -> None:
    votes, _ = Simulation(questions=2000, models=6, seed=3).votes()
    chosen = np.column_stack([votes.chosen, votes.chosen[:, 2]])
    excess = excess_agreement(Votes(chosen, votes.gold, votes.options, votes.clusters))
    weights = vote_weights(excess)
    assert weights[[2, 6]].tolist() == pytest.approx([0.5, 0.5])
    assert weights[[0, 1, 3, 4, 5]].min() > 0.85
    assert effective_models(excess, 0.0) == pytest.approx(49 / excess.sum())


def test_common_dependence_is_the_urns_excess_agreement() -> None:
    votes = small_votes()  # 3.5 options: 2.5 wrong ones
    agreement = (0.5 + 1) / (2.5 * 0.5 + 1)
    expected = (agreement - 0.4) / 0.6
    assert common_dependence(votes, 0.5) == pytest.approx(expected)
    assert common_dependence(votes, INDEPENDENT) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.75])
def test_planted_wrong_golds_are_found(spread: float) -> None:
    planted = hits = listed = 0
    for seed in range(4):
        outcome = found(Simulation(questions=1000, spread=spread, seed=seed))
        planted += outcome.planted
        hits += outcome.hits
        listed += outcome.listed
    assert hits / planted >= 0.8
    assert (listed - hits) / listed <= 0.2


@pytest.mark.slow
def test_models_that_share_most_errors_outvote_nothing() -> None:
    outcome = found(Simulation(questions=1000, shared=0.75, seed=0))
    assert outcome.effective < 3
    assert outcome.listed == 0


@pytest.mark.slow
def test_without_wrong_golds_nothing_is_listed() -> None:
    for seed in range(3):
        assert found(Simulation(questions=1000, wrong=0.0, seed=seed)).listed <= 1

"""Signs in the models' answers to the closed questions of one benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from medtasks.core.text import counted
from medtasks.stats.gold_posterior import (
    LEAST_MODELS,
    GoldPosterior,
    doubtful,
    gold_posterior,
)
from medtasks.stats.item_rest import (
    Discrimination,
    false_discovery_values,
    item_discrimination,
)
from medtasks.stats.votes import NO_VOTE, Mask, Votes

from .answered_questions import AuditedQuestion, vote
from .closed_questions import ClosedQuestion
from .signs import Sign, SignKind

FALSE_DISCOVERIES = 0.1
"""The false discovery rate among questions that are listed only because good models miss them and
weak ones get them.
"""
_NOTABLE_P = 0.05
"""The largest p-value at which a question that is already listed gets the sign, too."""
_BY_CHANCE = 0.05
"""A question is skipped if guesses of all blind runs are right with a higher probability."""
_LEAST_BLIND = 2
"""Fewer blind runs are not compared."""


@dataclass
class VoteSigns:
    """The signs by the place of the question, and what they are based on.

    ``probability_wrong`` and ``rival`` are by place, too; ``expected_error`` is the mean
    probability that the gold answers of the outvoted questions are right. ``models`` are those that
    voted, ``effective`` is how many independent ones they are worth, if that was estimated.
    """

    models: tuple[str, ...] = ()
    effective: float | None = None
    wrong_rate: float | None = None
    expected_error: float | None = None
    signs: dict[int, list[Sign]] = field(default_factory=dict)
    probability_wrong: dict[int, float] = field(default_factory=dict)
    rival: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, place: int, sign: Sign) -> None:
        self.signs.setdefault(place, []).append(sign)


@dataclass(frozen=True)
class _VotedQuestion:
    """A closed question with a vote, its place among all questions, and each model's vote."""

    place: int
    closed: ClosedQuestion
    votes: Mapping[str, int | None]
    cluster: str


def vote_signs(questions: Sequence[AuditedQuestion], names: Mapping[str, str]) -> VoteSigns:
    """The signs in the answers to these questions of one benchmark; ``names`` are the models'."""
    voted = list(_voted(questions))
    models = sorted({model for question in voted for model in question.votes})
    signs = VoteSigns(models=tuple(names[model] for model in models))
    if len(models) < LEAST_MODELS:
        _add_text_only(signs, questions)
        signs.notes.append(
            f"answers are not compared: found {counted(len(models), 'model')} with answers to "
            f"closed questions, expected at least {LEAST_MODELS}; only duplicates, equal options "
            "and blind runs are looked at"
        )
        return signs
    votes = _votes(voted, models)
    posterior = gold_posterior(votes)
    signs.effective = posterior.effective
    signs.wrong_rate = posterior.model.wrong_rate
    _add_outvoted(signs, voted, votes, posterior)
    _add_inverted(signs, voted, models, votes)
    _add_text_only(signs, questions)
    return signs


def _voted(questions: Sequence[AuditedQuestion]) -> Iterator[_VotedQuestion]:
    """The closed questions that a model with media answered, with every model's vote."""
    for place, question in enumerate(questions):
        if question.closed is not None and question.chosen:
            votes = {model: vote(chosen) for model, chosen in question.chosen.items()}
            yield _VotedQuestion(place, question.closed, votes, question.cluster)


def _votes(voted: Sequence[_VotedQuestion], models: Sequence[str]) -> Votes:
    """The votes as arrays."""
    column_of = {model: column for column, model in enumerate(models)}
    chosen = np.full((len(voted), len(models)), NO_VOTE, dtype=np.int64)
    for row, question in enumerate(voted):
        for model, option in question.votes.items():
            if option is not None:
                chosen[row, column_of[model]] = option
    clusters = np.unique([question.cluster for question in voted], return_inverse=True)[1]
    return Votes(
        chosen=chosen,
        gold=np.array([question.closed.gold for question in voted], dtype=np.int64),
        options=np.array([len(question.closed.labels) for question in voted], dtype=np.int64),
        clusters=clusters.astype(np.int64),
    )


# --- models agree on another option ---


def _add_outvoted(
    signs: VoteSigns, voted: Sequence[_VotedQuestion], votes: Votes, posterior: GoldPosterior
) -> None:
    """Add the signs of questions whose gold answer is probably wrong."""
    if not posterior.is_decisive:
        signs.notes.append(
            f"agreement on other options is not listed: {len(signs.models)} models share so many "
            f"errors that they are worth {posterior.effective:.1f} independent ones, expected at "
            f"least {LEAST_MODELS}"
        )
        return
    rows = doubtful(posterior.wrong)
    for row, probability in enumerate(posterior.wrong.tolist()):
        if not math.isnan(probability):
            signs.probability_wrong[voted[row].place] = probability
    for row in rows.tolist():
        question, rival = voted[row], int(posterior.rival[row])
        signs.rival[question.place] = rival
        signs.add(question.place, _outvoted_sign(question, rival, float(posterior.wrong[row])))
    if len(rows):
        signs.expected_error = float(1 - posterior.wrong[rows].mean())
    if votes.models < LEAST_MODELS + 2:
        signs.notes.append(
            f"with {votes.models} models, few wrong gold answers are found: see docs/audit.md"
        )


def _outvoted_sign(question: _VotedQuestion, rival: int, probability: float) -> Sign:
    """The sign that a question's models choose another option."""
    chosen = [option for option in question.votes.values() if option is not None]
    for_rival = chosen.count(rival)
    for_gold = chosen.count(question.closed.gold)
    share = f"{for_rival} of {len(question.votes)} models choose"
    chance = f"probability that the gold answer is wrong: {_percent(probability)}"
    preferred = question.closed.described(rival)
    gold = question.closed.described(question.closed.gold)
    return Sign(
        SignKind.OUTVOTED,
        f"{share} {preferred}, {for_gold} the gold answer {gold}; {chance}",
        f"{share} the same other option, {for_gold} the gold answer; {chance}",
    )


def _percent(share: float) -> str:
    """A probability in percent; never rounded to 100 %."""
    return "more than 99 %" if share > 0.99 else f"{100 * share:.0f} %"


# --- good models miss it, weak ones get it ---


def _add_inverted(
    signs: VoteSigns, voted: Sequence[_VotedQuestion], models: Sequence[str], votes: Votes
) -> None:
    """Add the signs of questions that order the models the wrong way round.

    A question without another sign is listed if its p-value, adjusted for all questions, is at most
    `FALSE_DISCOVERIES`; for one that is listed for its votes, its own p-value need only be at most
    `_NOTABLE_P`.
    """
    answered = _answered(voted, models)
    discrimination = item_discrimination(votes.is_right, answered, votes.clusters)
    adjusted = false_discovery_values(discrimination.p_value)
    is_negative = discrimination.high < 0
    for row in np.flatnonzero(is_negative).tolist():
        is_listed = voted[row].place in signs.signs
        is_notable = is_listed and discrimination.p_value[row] <= _NOTABLE_P
        if is_notable or adjusted[row] <= FALSE_DISCOVERIES:
            right = int((votes.is_right & answered)[row].sum())
            missed = int(answered[row].sum()) - right
            signs.add(voted[row].place, _inverted_sign(discrimination, row, right, missed))


def _answered(voted: Sequence[_VotedQuestion], models: Sequence[str]) -> Mask:
    """Whether ``(questions, models)`` each model answered each question, in any form."""
    answered = np.zeros((len(voted), len(models)), dtype=np.bool_)
    for row, question in enumerate(voted):
        for column, model in enumerate(models):
            answered[row, column] = model in question.votes
    return answered


def _inverted_sign(discrimination: Discrimination, row: int, right: int, missed: int) -> Sign:
    """The sign that the models that miss a question are better than those that get it."""
    points = -100 * float(discrimination.difference[row])
    low, high = -100 * float(discrimination.high[row]), -100 * float(discrimination.low[row])
    return Sign(
        SignKind.INVERTED,
        f"the {counted(missed, 'model')} that miss it score {points:.1f} points higher on the "
        f"other questions than the {right} that get it (95 % interval {low:.1f} to {high:.1f}; "
        f"p = {float(discrimination.p_value[row]):.2g})",
    )


# --- all blind runs get it ---


def _add_text_only(signs: VoteSigns, questions: Sequence[AuditedQuestion]) -> None:
    """Add the signs of questions that every run without media gets, if guessing hardly would."""
    most_blind = max((len(question.chosen_blind) for question in questions), default=0)
    if not most_blind:
        return
    by_guessing = 0
    for place, question in enumerate(questions):
        closed, blind = question.closed, question.chosen_blind
        if closed is None or len(blind) < _LEAST_BLIND:
            continue
        chance = (1 / len(closed.labels)) ** len(blind)
        if chance > _BY_CHANCE:
            by_guessing += 1
        elif all(vote(chosen) == closed.gold for chosen in blind.values()):
            text = f"all {len(blind)} blind runs get it (guessing alone: {100 * chance:.1g} %)"
            signs.add(place, Sign(SignKind.TEXT_ONLY, text))
    if most_blind < _LEAST_BLIND:
        signs.notes.append(
            f"blind runs are not compared: found 1 model, expected at least {_LEAST_BLIND}"
        )
    elif by_guessing:
        signs.notes.append(
            f"blind runs are not compared on {counted(by_guessing, 'question')}, on which all "
            f"would be right by guessing in more than {100 * _BY_CHANCE:.0f} % of cases"
        )

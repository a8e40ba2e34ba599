"""One sentence about a ranking, made of its paired tests: who leads, by how much, and who cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .board import BoardColumn, BoardModel, Cell, Ranking, Unit
from .numbers import number

MOST_NAMED = 3
"""Models named in a sentence; the others are counted."""

_UNITS: dict[Unit, str] = {"fraction": " points", "points": " points", "seconds": " s", "score": "", "rank": ""}
"""Units of differences; those of fractions are percentage points."""


def finding(ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]) -> str:
    """What the ranking shows, in a sentence or two.

    Args:
        ranking: of one headline score.
        models: by slug.
        cells: the score of each ranked model, by slug.
    """
    order = [one.model for one in ranking.ranked]
    if not order:
        return "No model is ranked."
    if len(order) == 1:
        return f"{models[order[0]].name} is the only model with a comparable result."
    letters = {one.model: {*one.letters} for one in ranking.ranked}
    equals = [model for model in order if letters[model] & letters[order[0]]]
    behind = [model for model in order if model not in equals]
    sentences = [_top(equals, behind, ranking, models)]
    if ranking.warning and not behind:
        sentences.append(f"With only {ranking.clusters} clusters, even large differences may not be significant.")
    sentences.append(_chance(ranking.column, order, models, cells))
    return " ".join(filter(None, sentences))


def _top(equals: Sequence[str], behind: Sequence[str], ranking: Ranking, models: Mapping[str, BoardModel]) -> str:
    best = models[equals[0]].name if equals else models[ranking.ranked[0].model].name
    if not ranking.pairs or not equals:
        return f"{best} has the best value; differences were not tested."
    # models that share a letter with the best may still differ from each other
    tied = f"{_named(equals, models)} cannot be told apart"
    if len(equals) > 2:
        tied = f"{_named(equals[1:], models)} cannot be told apart from {best}"
    if not behind:
        return f"{tied}."
    lead = f"{best} leads {models[behind[0]].name}{_by(equals[0], behind[0], ranking)}{_next(behind, ranking, models)}."
    return lead if len(equals) == 1 else f"{tied}; {lead}"


def _next(behind: Sequence[str], ranking: Ranking, models: Mapping[str, BoardModel]) -> str:
    """By how much the best of those behind leads the model after it; nothing if they cannot be told apart."""
    letters = {one.model: {*one.letters} for one in ranking.ranked}
    if len(behind) < 2 or letters[behind[0]] & letters[behind[1]]:
        return ""
    first, second = (models[one].name for one in behind[:2])
    return f", and {first} leads {second}{_by(behind[0], behind[1], ranking)}"


def _by(first: str, second: str, ranking: Ranking) -> str:
    """`` by 3.1 points (95 % interval 1.2 to 5.0)``; nothing for a pair that was not compared."""
    pair = next((one for one in ranking.pairs if {one.first, one.second} == {first, second}), None)
    if pair is None:
        return ""
    unit = ranking.column.unit
    sign = 1 if ranking.column.higher_is_better == (pair.first == first) else -1
    text = f" by {number(sign * pair.difference, unit)}{_UNITS[unit]}"
    if pair.low is None or pair.high is None:
        return text
    low, high = sorted((sign * pair.low, sign * pair.high))
    return f"{text} (95 % interval {number(low, unit)} to {number(high, unit)})"


def _chance(
    column: BoardColumn, order: Sequence[str], models: Mapping[str, BoardModel], cells: Mapping[str, Cell]
) -> str:
    """Which models, apart from baselines, have an interval that does not lie above the chance level."""
    if column.chance is None:
        return ""
    low = {model: cells[model].low for model in order if models[model].type != "baseline"}
    guessing = [model for model, end in low.items() if end is not None and end <= column.chance]
    if not guessing:
        return ""
    level = f"{number(column.chance, column.unit)}{' %' if column.unit == 'fraction' else ''}"
    return f"{_named(guessing, models)} {'is' if len(guessing) == 1 else 'are'} not above chance ({level})."


def _named(chosen: Sequence[str], models: Mapping[str, BoardModel]) -> str:
    names = [models[model].name for model in chosen]
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more models"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

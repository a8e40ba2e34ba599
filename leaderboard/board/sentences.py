"""One sentence about a ranking, made of its paired tests: who leads, by how much, and who cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .board import BoardModel, Cell, Ranking, Unit
from .numbers import number

MOST_NAMED = 3
"""Models named in a sentence; the others are counted."""

_UNITS: dict[Unit, str] = {"fraction": " points", "points": " points", "seconds": " s", "score": "", "rank": ""}
"""Units of differences; those of fractions are percentage points."""


def finding(ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]) -> str:
    """What the ranking shows, in a sentence or two; ``models`` and the ``cells`` of the ranked score are by slug."""
    order = [one.model for one in ranking.ranked]
    if not order:
        return "No model is ranked."
    if len(order) == 1:
        return f"{models[order[0]].name} is the only model with a comparable result."
    best = models[order[0]].name
    letters = {one.model: {*one.letters} for one in ranking.ranked}
    equals = [model for model in order if letters[model] & letters[order[0]]]
    behind = [model for model in order if model not in equals]
    # models that share a letter with the best may still differ from each other
    others = equals if len(equals) == 2 else equals[1:]
    tied = f"{_named(others, models)} cannot be told apart" if others else ""
    if len(equals) > 2:
        tied += f" from {best}"
    lead = ""
    if behind:
        lead = f"{best} leads {models[behind[0]].name}{_by(order[0], behind[0], ranking)}"
        if len(behind) > 1 and not letters[behind[0]] & letters[behind[1]]:
            first, second = (models[one].name for one in behind[:2])
            lead += f", and {first} leads {second}{_by(behind[0], behind[1], ranking)}"
    sentences = [f"{'; '.join(filter(None, (tied, lead)))}."]
    if ranking.warning and not behind:
        sentences.append(f"With only {ranking.clusters} clusters, even large differences may not be significant.")
    column = ranking.column
    if column.chance is not None:
        low = {model: cells[model].low for model in order if models[model].type != "baseline"}
        if guessing := [model for model, end in low.items() if end is not None and end <= column.chance]:
            level = f"{number(column.chance, column.unit)}{' %' if column.unit == 'fraction' else ''}"
            verb = "is" if len(guessing) == 1 else "are"
            sentences.append(f"{_named(guessing, models)} {verb} not above chance ({level}).")
    return " ".join(sentences)


def _by(first: str, second: str, ranking: Ranking) -> str:
    """`` by 3.1 points (95 % interval 1.2 to 5.0)``."""
    pair = next(one for one in ranking.pairs if {one.first, one.second} == {first, second})
    unit = ranking.column.unit
    sign = 1 if ranking.column.higher_is_better == (pair.first == first) else -1
    text = f" by {number(sign * pair.difference, unit)}{_UNITS[unit]}"
    if pair.low is None or pair.high is None:
        return text
    low, high = sorted((sign * pair.low, sign * pair.high))
    return f"{text} (95 % interval {number(low, unit)} to {number(high, unit)})"


def _named(chosen: Sequence[str], models: Mapping[str, BoardModel]) -> str:
    names = [models[model].name for model in chosen]
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more models"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

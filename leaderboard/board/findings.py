"""What a ranking shows, in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from medtasks.stats.paired import few_clusters

from ..schema.board import BoardModel, Cell, Ranking
from ..schema.numbers import DIFFERENCES, number
from .floors import highest_floor, level_text

MOST_NAMED = 3
"""Models named in a sentence; the others are counted."""


def finding(ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]) -> str:
    """What the ranking shows, in a sentence or two; ``models`` and the ``cells`` of the ranked
    score are by slug.
    """
    order = [one.model for one in ranking.ranked]
    if not order:
        return "No model is ranked."
    best = models[order[0]].name
    if len(order) == 1:
        return f"{best} is the only model with a comparable result."
    letters = {one.model: {*one.letters} for one in ranking.ranked}
    equals = [model for model in order if letters[model] & letters[order[0]]]
    behind = [model for model in order if model not in equals]
    # models that share a letter with the best may still differ from each other
    others = equals if len(equals) == 2 else equals[1:]
    parts = (
        [f"{_named(others, models)} cannot be told apart" + f" from {best}" * (len(equals) > 2)]
        if others
        else []
    )
    if behind:
        lead = f"{best} leads {models[behind[0]].name}{_by(order[0], behind[0], ranking)}"
        if len(behind) > 1 and not letters[behind[0]] & letters[behind[1]]:
            first, second = (models[one].name for one in behind[:2])
            lead += f", and {first} leads {second}{_by(behind[0], behind[1], ranking)}"
        parts.append(lead)
    sentences = [f"{'; '.join(parts)}."]
    if not behind and few_clusters(ranking.clusters) is not None:
        sentences.append(
            f"With only {ranking.clusters} clusters, even large differences may not be significant."
        )
    sentences += _not_above_floor(ranking, models, cells)
    return " ".join(sentences)


def _not_above_floor(
    ranking: Ranking, models: Mapping[str, BoardModel], cells: Mapping[str, Cell]
) -> Iterator[str]:
    """The models whose interval reaches the highest floor; baselines are expected to."""
    column = ranking.column
    floor = highest_floor(column)
    if floor is None:
        return
    competing = [one.model for one in ranking.ranked if models[one.model].type != "baseline"]
    if column.higher_is_better:
        ends = {model: cells[model].low for model in competing}
        reached = [model for model, low in ends.items() if low is not None and low <= floor.level]
    else:
        ends = {model: cells[model].high for model in competing}
        reached = [
            model for model, high in ends.items() if high is not None and high >= floor.level
        ]
    if reached:
        verb = "is" if len(reached) == 1 else "are"
        better = "above" if column.higher_is_better else "better than"
        yield f"{_named(reached, models)} {verb} not {better} {floor.phrase} ({level_text(floor, column)})."


def _by(first: str, second: str, ranking: Ranking) -> str:
    """`` by 3.1 points (95 % interval 1.2 to 5.0)``."""
    pair = next(one for one in ranking.pairs if {one.first, one.second} == {first, second})
    unit = ranking.column.unit
    sign = 1 if ranking.column.higher_is_better == (pair.first == first) else -1
    text = f" by {number(sign * pair.difference, unit)}{DIFFERENCES[unit]}"
    if pair.low is None or pair.high is None:
        return text
    low, high = sorted((sign * pair.low, sign * pair.high))
    return f"{text} (95 % interval {number(low, unit)} to {number(high, unit)})"


def _named(chosen: Sequence[str], models: Mapping[str, BoardModel]) -> str:
    names = [models[model].name for model in chosen]
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more models"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
